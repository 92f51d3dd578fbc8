/* The orientation that a picture file tells, in EXIF or XMP. */
#ifndef SP_IMAGE_EXIF_H
#define SP_IMAGE_EXIF_H

#include "image/codec.h"

/* Orientation of a TIFF block (with or without "Exif\0\0" before it): 1...8, or 0 when it has none or is broken. */
int sp_exif_orientation(sp_bytes exif);

/* Orientation of an XMP packet: 1...8, or 0. */
int sp_xmp_orientation(sp_bytes xmp);

#endif
