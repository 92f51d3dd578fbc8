/*
 * The keypoints of one picture.
 *
 *     cc one_picture.c $(pkg-config --cflags --libs superpoint) -o one_picture
 *     ./one_picture /usr/local/share/superpoint/superpoint.safetensors photo.jpg
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <superpoint.h>

/* The whole file; the caller frees it. NULL: errno says why. */
static void *read_file(const char *path, size_t *size) {
    FILE *file = fopen(path, "rb");
    unsigned char *bytes = NULL;
    size_t room = 0;
    *size = 0;
    while (file) {
        if (*size == room) {
            const size_t more = room ? 2 * room : 1 << 20;
            unsigned char *larger = more > room ? realloc(bytes, more) : NULL;
            if (!larger)
                break;
            bytes = larger;
            room = more;
        }
        const size_t got = fread(bytes + *size, 1, room - *size, file);
        *size += got;
        if (got == 0 && !ferror(file)) {
            fclose(file);
            return bytes;
        }
        if (got == 0)
            break;
    }
    const int why = errno;
    free(bytes);
    if (file)
        fclose(file);
    errno = why;
    return NULL;
}

int main(int argc, char **argv) {
    if (argc != 3) {
        fprintf(stderr, "usage: one_picture WEIGHTS PICTURE\n");
        return 2;
    }
    size_t size = 0;
    void *bytes = read_file(argv[2], &size);
    if (!bytes) {
        perror(argv[2]);
        return 1;
    }

    sp_params params;
    sp_params_default(&params);
    params.max_keypoints = 500;
    params.coordinates = SP_COORDINATES_CENTRE;

    sp_error err;
    sp_model *model = NULL;
    sp_engine *engine = NULL;
    sp_features found = {0};
    sp_status status = sp_model_open(argv[1], NULL, &model, &err);
    if (status == SP_OK)
        status = sp_engine_create(model, NULL, &engine, &err);
    if (status == SP_OK)
        status = sp_detect(engine, bytes, size, &params, &found, &err);
    if (status != SP_OK)
        fprintf(stderr, "%s\n", err.text);
    for (size_t i = 0; i < found.count; i++)
        printf("%.2f %.2f %.4f\n", (double)found.keypoints[2 * i], (double)found.keypoints[2 * i + 1],
               (double)found.scores[i]);

    sp_features_free(&found);
    sp_engine_free(engine);
    sp_model_free(model);
    free(bytes);
    if (fflush(stdout) != 0 || ferror(stdout)) {
        perror("standard output");
        return 1;
    }
    return status == SP_OK ? 0 : 1;
}
