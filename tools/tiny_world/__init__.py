"""A small procedural world with exact pictures, poses and captions of any number of clips.

A walled courtyard with coloured boxes, seen by someone who walks under the renderer's own action
rules. The miniature model learns it and is measured against it.

    scene, layout     what stands where, drawn from a seed; its palettes, its ground plan
    lens, look        the camera's intrinsics; light and trim
    cast_numpy        one picture, plainly: the reference
    cast_torch        many pictures, quickly: views, *_forms say what, paint_* paint it
    walk, caption     action strings that hit nothing; what the scene is called
    clip              all of it from one seed
    show, speed       contact sheets; how quick it is
"""
