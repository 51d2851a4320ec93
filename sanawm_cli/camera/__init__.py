"""The camera: action strings, trajectory files, intrinsics and ray maps. numpy only."""
