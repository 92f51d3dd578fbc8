/* Prints the size of every public struct and the offset of every field, for other languages' bindings. */
#include <stddef.h>
#include <stdio.h>

#include "superpoint.h"

#define SIZE(type) printf(#type " %zu\n", sizeof(type))
#define FIELD(type, field) printf(#type "." #field " %zu\n", offsetof(type, field))

static void print_pictures(void) {
    SIZE(sp_error), FIELD(sp_error, status), FIELD(sp_error, text);
    SIZE(sp_rect), FIELD(sp_rect, x), FIELD(sp_rect, y), FIELD(sp_rect, width), FIELD(sp_rect, height);
    SIZE(sp_params), FIELD(sp_params, struct_size), FIELD(sp_params, max_keypoints);
    FIELD(sp_params, keypoint_threshold), FIELD(sp_params, nms_radius), FIELD(sp_params, nms);
    FIELD(sp_params, border), FIELD(sp_params, channel), FIELD(sp_params, resize), FIELD(sp_params, width);
    FIELD(sp_params, height), FIELD(sp_params, exif), FIELD(sp_params, coordinates);
    FIELD(sp_params, descriptors), FIELD(sp_params, descriptor_dtype), FIELD(sp_params, roi);
    FIELD(sp_params, max_pixels), FIELD(sp_params, subpixel);
    SIZE(sp_image), FIELD(sp_image, width), FIELD(sp_image, height), FIELD(sp_image, channels);
    FIELD(sp_image, stride), FIELD(sp_image, pixels);
    SIZE(sp_frame), FIELD(sp_frame, width), FIELD(sp_frame, height), FIELD(sp_frame, content_width);
    FIELD(sp_frame, content_height), FIELD(sp_frame, original_width), FIELD(sp_frame, original_height);
    FIELD(sp_frame, scale_x), FIELD(sp_frame, scale_y), FIELD(sp_frame, stride), FIELD(sp_frame, pixels);
    FIELD(sp_frame, mask);
}

static void print_engines(void) {
    SIZE(sp_model_info), FIELD(sp_model_info, path), FIELD(sp_model_info, id), FIELD(sp_model_info, revision);
    FIELD(sp_model_info, sha256), FIELD(sp_model_info, licence), FIELD(sp_model_info, parameters);
    SIZE(sp_engine_options), FIELD(sp_engine_options, struct_size), FIELD(sp_engine_options, engine);
    FIELD(sp_engine_options, precision), FIELD(sp_engine_options, level), FIELD(sp_engine_options, threads);
    FIELD(sp_engine_options, width), FIELD(sp_engine_options, height), FIELD(sp_engine_options, nms_radius);
    FIELD(sp_engine_options, legacy);
    SIZE(sp_engine_info), FIELD(sp_engine_info, engine), FIELD(sp_engine_info, device);
    FIELD(sp_engine_info, level), FIELD(sp_engine_info, precision), FIELD(sp_engine_info, threads);
    FIELD(sp_engine_info, traced), FIELD(sp_engine_info, device_nms), FIELD(sp_engine_info, nms_radius);
    FIELD(sp_engine_info, fused_stages);
    SIZE(sp_maps), FIELD(sp_maps, width), FIELD(sp_maps, height), FIELD(sp_maps, scores);
    FIELD(sp_maps, suppressed), FIELD(sp_maps, nms_radius), FIELD(sp_maps, descriptors);
    FIELD(sp_maps, forward_ms), FIELD(sp_maps, capacity), FIELD(sp_maps, memory);
}

static void print_features(void) {
    SIZE(sp_features), FIELD(sp_features, count), FIELD(sp_features, keypoints), FIELD(sp_features, scores);
    FIELD(sp_features, descriptors), FIELD(sp_features, descriptor_dtype), FIELD(sp_features, pixels);
    FIELD(sp_features, device_nms), FIELD(sp_features, extract_ms), FIELD(sp_features, memory);
    SIZE(sp_descriptors), FIELD(sp_descriptors, data), FIELD(sp_descriptors, count), FIELD(sp_descriptors, dtype);
    SIZE(sp_match_options), FIELD(sp_match_options, struct_size), FIELD(sp_match_options, mutual);
    FIELD(sp_match_options, max_ratio), FIELD(sp_match_options, max_distance), FIELD(sp_match_options, level);
    FIELD(sp_match_options, threads);
    SIZE(sp_matches), FIELD(sp_matches, count), FIELD(sp_matches, pairs), FIELD(sp_matches, similarities);
    FIELD(sp_matches, memory);
}

int main(void) {
    print_pictures();
    print_engines();
    print_features();
    return 0;
}
