/* The headers of a JPEG, read before libjpeg sees the file: sizes, kind, orientation. */
#ifndef SP_IMAGE_JPEG_HEADER_H
#define SP_IMAGE_JPEG_HEADER_H

#include "image/codec.h"

bool sp_jpeg_match(sp_bytes file);
sp_status sp_jpeg_probe(sp_bytes file, sp_image_info *info, sp_error *err);

#endif
