/*
 * The keypoints of one picture.
 *
 *     cc one_picture.c $(pkg-config --cflags --libs superpoint) -o one_picture
 *     ./one_picture /usr/local/share/superpoint/superpoint.safetensors photo.jpg
 */
#include <stdio.h>
#include <stdlib.h>
#include <superpoint.h>

static void *read_file(const char *path, size_t *size) {
    FILE *file = fopen(path, "rb");
    if (!file || fseek(file, 0, SEEK_END) != 0)
        return NULL;
    *size = (size_t)ftell(file);
    rewind(file);
    void *bytes = malloc(*size + 1);
    if (bytes && fread(bytes, 1, *size, file) != *size) {
        free(bytes);
        bytes = NULL;
    }
    fclose(file);
    return bytes;
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
    return status == SP_OK ? 0 : 1;
}
