"""Scripts and packages for working on the renderer. The renderer never imports them."""
