"""Light and trim, the same in every scene. Brightness is a factor on the colour."""

# Of upright faces that look along −x, +x, −z, +z: the sun stands to one side, so that the four
# directions can be told apart. Faces of boxes and of the surrounding walls share it.
LIGHT = {0: (0.92, 0.72), 2: (1.0, 0.82)}
LIGHT_ABOVE = 1.08  # of faces that look up
BRIGHTEST = 0.92  # of colours: none gets brighter than white by light

CORNICE = 0.1  # height of the band along the top of a wall
CORNICE_LIGHT = 0.68
WALL_FOOT = 0.76  # brightness where the wall meets the floor, 1 from the eye's height on
FLOOR_EDGE = 0.7  # brightness of the floor where it meets the wall, 1 from EDGE_WIDTH on
EDGE_WIDTH = 0.33
BOX_FOOT = 0.72  # brightness where a box meets the floor, 1 from BOX_RISE up
BOX_RISE = 0.2

SKY_RISE = 1.9  # the zenith's colour is reached where the sine of elevation is 1 / SKY_RISE

# Inverse distances are not allowed below this: nothing in a courtyard is 20 units away.
LEAST_INVERSE = 0.05
LAP = 1.0  # pixels by which a wall reaches under the next one: as wide as an edge is soft
