/* One picture's features on their way to a file. */
#ifndef SUPERPOINT_OUTPUT_RECORD_H
#define SUPERPOINT_OUTPUT_RECORD_H

#include "superpoint.h"

typedef struct record {
    const char *name;       /* the picture's, as it is stored */
    uint32_t width, height; /* of the original picture */
    uint32_t frame_width, frame_height;
    double scale_x, scale_y; /* original / frame */
    uint64_t file_size;      /* of the picture's file, and when it last changed, */
    int64_t file_time;       /* nanoseconds since 1970: a changed file is extracted again */
    size_t count;
    sp_dtype dtype;          /* of the descriptors */
    const float *keypoints;  /* [count][2] */
    const float *scores;     /* [count] */
    bool described;          /* descriptors were asked for */
    const void *descriptors; /* [count][256] */
} record;

#endif
