/* Pictures: header, whole decoding, and the frame, which is streamed. */
#include <stdint.h>
#include <stdlib.h>

#include "superpoint.h"

/* Small enough that the fuzzer's time goes into the parsers. */
enum { MAX_PIXELS = 1 << 20 };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    sp_params params;
    sp_image_info info, again;
    sp_image image;
    sp_frame frame;
    sp_error err;
    sp_params_default(&params);
    params.max_pixels = MAX_PIXELS;
    params.width = 64;
    params.height = 48;
    params.exif = size & 1 ? SP_EXIF_APPLY : SP_EXIF_IGNORE;
    params.channel = size & 2 ? SP_CHANNEL_LUMA : SP_CHANNEL_RED;
    const sp_status probed = sp_image_probe(data, size, &info, &err);
    const sp_status decoded = sp_image_decode(data, size, &params, &image, &again, &err);
    const sp_status framed = sp_frame_decode(data, size, &params, &frame, NULL, &err);
    if (decoded == SP_OK && (probed != SP_OK || (uint64_t)image.width * image.height > MAX_PIXELS))
        abort();
    if ((decoded == SP_OK) != (framed == SP_OK)) /* two ways to the same pixels */
        abort();
    if (decoded == SP_OK) {
        sp_frame slow;
        if (sp_frame_from_image(&image, &params, &slow, &err) != SP_OK)
            abort();
        for (size_t i = 0; i < (size_t)slow.stride * slow.height; i++)
            if (slow.pixels[i] != frame.pixels[i])
                abort();
        sp_frame_free(&slow);
    }
    sp_image_free(&image);
    sp_frame_free(&frame);
    return 0;
}
