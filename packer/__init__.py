"""Write side: packs images into datasets that `readers` opens."""
