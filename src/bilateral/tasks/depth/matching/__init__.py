"""Maps of stereo matching: recognise them, and the parts that are wrong in their own way."""
