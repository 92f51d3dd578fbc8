/* /openapi.json: made from the table of parameters and the limits in force, so that it says what the server does. */
#include "openapi.h"

#include <string.h>

#include "common/jsonout.h"
#include "common/params.h"

#define ANY_INTEGER "{\"type\": \"integer\", \"minimum\": -2147483647, \"maximum\": 2147483647}"
#define SOME_INTEGER "{\"type\": \"integer\", \"minimum\": 1, \"maximum\": 2147483647}"

/* Where a parameter stands: bodies take numbers and booleans as strings too, and that of /predict a rectangle as an
 * array. */
typedef enum place { IN_QUERY, IN_BODY, IN_INFER } place;

static void put_parameter_schema(const server *s, const param_spec *p, place where, buffer *out) {
    bool body = where != IN_QUERY;
    char text[64];
    params_text(&s->defaults, p, text, sizeof text);
    bool bare = p->kind == PARAM_INTEGER || p->kind == PARAM_NUMBER || p->kind == PARAM_BOOLEAN;
    buffer_text(out, "{\"description\": ");
    json_put_string(out, p->help);
    if (p->kind != PARAM_RECT) {
        buffer_text(out, ", \"default\": ");
        if (bare)
            buffer_text(out, text);
        else
            json_put_string(out, text);
    }
    switch (p->kind) {
    case PARAM_INTEGER:
        buffer_format(out,
                      body ? ", \"anyOf\": [{\"type\": \"integer\", \"minimum\": %.0f, \"maximum\": %.0f}, "
                             "{\"type\": \"string\", \"format\": \"number-%s\"}]"
                           : ", \"type\": \"integer\", \"minimum\": %.0f, \"maximum\": %.0f",
                      p->minimum, p->maximum, p->name);
        break;
    case PARAM_NUMBER:
        buffer_text(out, ", \"anyOf\": [{\"type\": \"number\", \"minimum\": -3.4028234663852886e38, \"maximum\": "
                         "3.4028234663852886e38}");
        buffer_text(out, body ? ", {\"type\": \"string\", \"format\": \"number-any\"}]" : "]");
        break;
    case PARAM_BOOLEAN:
        buffer_text(out, body
                             ? ", \"anyOf\": [{\"type\": \"boolean\"}, {\"enum\": [0, 1, \"true\", \"false\", \"yes\", "
                               "\"no\", \"on\", \"off\", \"1\", \"0\"]}]"
                             : ", \"enum\": [\"true\", \"false\", \"yes\", \"no\", \"on\", \"off\", \"1\", \"0\"]");
        break;
    case PARAM_CHOICE:
        buffer_text(out, ", \"type\": \"string\", \"enum\": [");
        for (int i = 0; p->choices[i]; i++) {
            buffer_text(out, i ? ", " : "");
            json_put_string(out, p->choices[i]);
        }
        buffer_char(out, ']');
        break;
    case PARAM_SIZE:
        buffer_text(out, ", \"type\": \"string\", \"format\": \"frame-size\"");
        break;
    case PARAM_RECT:
        buffer_text(out, where == IN_BODY
                             ? ", \"anyOf\": [{\"type\": \"string\", \"format\": \"rectangle\"}, {\"type\": \"null\"}, "
                               "{\"type\": \"array\", \"prefixItems\": [" ANY_INTEGER ", " ANY_INTEGER ", " SOME_INTEGER
                               ", " SOME_INTEGER "], "
                               "\"minItems\": 4, \"maxItems\": 4}]"
                             : ", \"type\": \"string\", \"format\": \"rectangle\"");
        break;
    }
    buffer_char(out, '}');
}

static void put_properties(const server *s, place where, buffer *out) {
    size_t count;
    const param_spec *specs = params_specs(&count);
    for (size_t i = 0; i < count; i++) {
        buffer_format(out, "%s\"%s\": ", i ? ", " : "", specs[i].name);
        put_parameter_schema(s, &specs[i], where, out);
    }
}

static void put_query(const server *s, buffer *out) {
    size_t count;
    const param_spec *specs = params_specs(&count);
    buffer_text(out, "\"parameters\": [");
    for (size_t i = 0; i < count; i++) {
        buffer_format(out, "%s{\"name\": \"%s\", \"in\": \"query\", \"required\": false, \"schema\": ", i ? ", " : "",
                      specs[i].name);
        put_parameter_schema(s, &specs[i], IN_QUERY, out);
        buffer_char(out, '}');
    }
    buffer_char(out, ']');
}

/* A response that every route may give. */
static void put_errors(const int *statuses, buffer *out) {
    static const struct {
        int status;
        const char *text;
    } texts[] = {{400, "a picture, body or parameter that is wrong; the text says what and where"},
                 {401, "a bearer token is needed"},
                 {404, "there is nothing here"},
                 {405, "this method is not allowed here; Allow lists those that are"},
                 {408, "the request did not arrive in time"},
                 {411, "a body needs a length"},
                 {413, "larger than a limit"},
                 {414, "the request target is too long"},
                 {415, "a body of a kind that is not read here"},
                 {417, "an expectation that is not known"},
                 {431, "the headers are too large"},
                 {500, "a defect of the server"},
                 {503, "starting, draining, full or stuck; Retry-After says when to try again"}};
    for (int i = 0; statuses[i]; i++)
        for (size_t k = 0; k < sizeof texts / sizeof texts[0]; k++)
            if (texts[k].status == statuses[i]) {
                buffer_format(out, ", \"%d\": {\"description\": ", statuses[i]);
                json_put_string(out, texts[k].text);
                buffer_text(out, ", \"content\": {\"application/json\": {\"schema\": {\"$ref\": "
                                 "\"#/components/schemas/Error\"}}}}");
            }
}

static void put_get(const char *path, const char *summary, const char *type, const char *schema, bool unready,
                    bool guarded, buffer *out) {
    static const int open_errors[] = {400, 408, 414, 417, 431, 0};
    static const int guarded_errors[] = {400, 401, 408, 414, 417, 431, 503, 0};
    buffer_format(out, ", \"%s\": {\"get\": {\"summary\": ", path);
    json_put_string(out, summary);
    if (!guarded)
        buffer_text(out, ", \"security\": []");
    buffer_format(out,
                  ", \"responses\": {\"200\": {\"description\": \"as asked\", \"content\": {\"%s\": {\"schema\": %s}}}",
                  type, schema);
    if (unready && !guarded)
        buffer_format(
            out,
            ", \"503\": {\"description\": \"not ready\", \"content\": {\"%s\": {\"schema\": {\"type\": \"object\"}}}}",
            type);
    put_errors(guarded ? guarded_errors : open_errors, out);
    buffer_text(out, "}}}");
}

static void put_predict(const server *s, buffer *out) {
    static const int errors[] = {400, 401, 408, 411, 413, 414, 415, 417, 431, 500, 503, 0};
    buffer_text(out, "\"/predict\": {\"post\": {\"summary\": \"Find the keypoints of a picture\", ");
    put_query(s, out);
    buffer_text(out, ", \"requestBody\": {\"required\": true, \"content\": {"
                     "\"application/json\": {\"schema\": {\"$ref\": \"#/components/schemas/PredictRequest\"}}, "
                     "\"image/jpeg\": {\"schema\": {\"type\": \"string\", \"format\": \"picture-bytes\"}}, "
                     "\"image/png\": {\"schema\": {\"type\": \"string\", \"format\": \"picture-bytes\"}}, "
                     "\"multipart/form-data\": {\"schema\": {\"$ref\": \"#/components/schemas/PredictForm\"}}}}, "
                     "\"responses\": {\"200\": {\"description\": \"the keypoints\", \"content\": {"
                     "\"application/json\": {\"schema\": {\"anyOf\": [{\"$ref\": \"#/components/schemas/Prediction\"}, "
                     "{\"$ref\": \"#/components/schemas/BatchPrediction\"}]}}, "
                     "\"application/x-npz\": {\"schema\": {\"type\": \"string\", \"format\": \"binary\"}}}}");
    put_errors(errors, out);
    buffer_text(out, "}}}");
}

static void put_infer(buffer *out) {
    static const int errors[] = {400, 401, 408, 411, 413, 414, 417, 431, 500, 503, 0};
    buffer_text(
        out,
        ", \"/v2/models/superpoint/infer\": {\"post\": {\"summary\": \"Inference by the Open Inference Protocol\", "
        "\"requestBody\": {\"required\": true, \"content\": {\"application/json\": {\"schema\": "
        "{\"$ref\": \"#/components/schemas/InferRequest\"}}}}, "
        "\"responses\": {\"200\": {\"description\": \"the output tensors\", \"content\": {\"application/json\": "
        "{\"schema\": {\"$ref\": \"#/components/schemas/InferResponse\"}}, "
        "\"application/octet-stream\": {\"schema\": {\"type\": \"string\", \"format\": \"binary\"}}}}");
    put_errors(errors, out);
    buffer_text(out, "}}}");
}

#define SIZE                                                                                                           \
    "{\"type\": \"object\", \"required\": [\"height\", \"width\"], \"properties\": {\"height\": {\"type\": "           \
    "\"integer\"}, \"width\": {\"type\": \"integer\"}}}"
#define PICTURE_PROPERTIES                                                                                             \
    "\"num_keypoints\": {\"type\": \"integer\", \"minimum\": 0}, \"keypoints\": {\"type\": \"array\", \"items\": "     \
    "{\"type\": \"array\", \"items\": {\"type\": \"number\"}, \"minItems\": 2, \"maxItems\": 2}}, \"scores\": "        \
    "{\"type\": \"array\", \"items\": {\"type\": \"number\"}}, \"original_size\": " SIZE ", \"image_size\": " SIZE     \
    ", \"scale\": {\"type\": \"object\", \"required\": [\"x\", \"y\"], \"properties\": {\"x\": {\"type\": "            \
    "\"number\"}, \"y\": {\"type\": \"number\"}}}, \"descriptors\": {\"type\": \"object\", \"required\": "             \
    "[\"format\", "                                                                                                    \
    "\"key\", \"dtype\", \"shape\", \"data\"], \"properties\": {\"format\": {\"const\": \"npz\"}, \"key\": "           \
    "{\"const\": "                                                                                                     \
    "\"descriptors\"}, \"dtype\": {\"enum\": [\"float16\", \"float32\", \"uint8\"]}, \"shape\": {\"type\": "           \
    "\"array\", \"items\": {\"type\": \"integer\"}}, \"data\": {\"type\": \"string\"}}}"
#define CONTEXT_PROPERTIES                                                                                             \
    "\"serving_path\": {\"type\": \"object\", \"required\": [\"traced\", \"device_nms\", \"engine\", \"device\", "     \
    "\"precision\"]}, \"model\": {\"type\": \"object\", \"required\": [\"weights\"]}, \"warnings\": {\"type\": "       \
    "\"array\", \"items\": {\"type\": \"string\"}}, \"timing_ms\": {\"type\": \"object\", \"required\": "              \
    "[\"preprocess\", \"device_forward\", \"postprocess\", \"total\", \"queue\"], \"additionalProperties\": "          \
    "{\"type\": \"number\"}}"
#define PICTURE_REQUIRED "\"num_keypoints\", \"keypoints\", \"scores\", \"original_size\", \"image_size\", \"scale\""
#define CONTEXT_REQUIRED "\"serving_path\", \"model\", \"warnings\", \"timing_ms\""

static void put_schemas(const server *s, buffer *out) {
    buffer_text(out, "\"Error\": {\"type\": \"object\", \"required\": [\"detail\"], \"properties\": {\"detail\": "
                     "{\"type\": \"string\"}}}, ");
    buffer_format(
        out,
        "\"PredictRequest\": {\"type\": \"object\", \"oneOf\": [{\"required\": [\"image\"]}, {\"required\": "
        "[\"images\"]}], \"properties\": {\"image\": {\"type\": \"string\", \"format\": \"picture\", "
        "\"description\": \"a picture file in base64\"}, \"images\": {\"type\": \"array\", \"minItems\": 1, "
        "\"maxItems\": %.0f, \"items\": {\"type\": \"string\", \"format\": \"picture\"}}, \"mask\": {\"anyOf\": "
        "[{\"type\": \"string\", \"format\": \"picture\"}, {\"type\": \"null\"}], \"description\": \"a picture, "
        "0 where no points are wanted\"}, ",
        s->config.limits.max_batch);
    put_properties(s, IN_BODY, out);
    buffer_text(out,
                "}}, \"PredictForm\": {\"type\": \"object\", \"required\": [\"image\"], \"properties\": {\"image\": "
                "{\"type\": \"string\", \"format\": \"picture-bytes\"}}}, \"Prediction\": {\"type\": \"object\", "
                "\"required\": [" PICTURE_REQUIRED ", " CONTEXT_REQUIRED "], \"properties\": {" PICTURE_PROPERTIES
                ", " CONTEXT_PROPERTIES "}}, ");
    buffer_text(out, "\"BatchPrediction\": {\"type\": \"object\", \"required\": [\"results\", " CONTEXT_REQUIRED
                     "], \"properties\": {\"results\": {\"type\": \"array\", \"items\": {\"type\": \"object\", "
                     "\"required\": [" PICTURE_REQUIRED "], \"properties\": {" PICTURE_PROPERTIES
                     "}}}, " CONTEXT_PROPERTIES "}}, ");
    buffer_text(out, "\"InferRequest\": {\"type\": \"object\", \"required\": [\"inputs\"], \"properties\": {\"id\": "
                     "{\"type\": \"string\", \"maxLength\": 128, \"pattern\": \"^[^\\\\u0000]*$\"}, \"parameters\": "
                     "{\"type\": \"object\", \"properties\": {");
    put_properties(s, IN_INFER, out);
    buffer_text(out,
                "}}, \"inputs\": {\"type\": \"array\", \"minItems\": 1, \"maxItems\": 1, \"items\": {\"type\": "
                "\"object\", \"required\": [\"name\", \"datatype\", \"shape\", \"data\"], \"properties\": {\"name\": "
                "{\"const\": \"image\"}, \"datatype\": {\"const\": \"BYTES\"}, \"shape\": {\"const\": [1]}, \"data\": "
                "{\"type\": \"array\", \"minItems\": 1, \"maxItems\": 1, \"items\": {\"type\": \"string\", \"format\": "
                "\"picture\"}}}}}}}, \"InferResponse\": {\"type\": \"object\", \"required\": [\"model_name\", "
                "\"model_version\", \"outputs\"], \"properties\": {\"outputs\": {\"type\": \"array\", \"items\": "
                "{\"type\": \"object\", \"required\": [\"name\", \"datatype\", \"shape\"]}}}}");
}

void openapi_text(const server *s, buffer *out) {
    static const char object[] = "{\"type\": \"object\"}";
    buffer_format(
        out,
        "{\"openapi\": \"3.1.0\", \"info\": {\"title\": \"superpoint\", \"version\": \"%s\", \"description\": "
        "\"Finds interest points in pictures and describes each by 256 numbers.\", \"license\": {\"name\": "
        "\"Apache-2.0\", \"identifier\": \"Apache-2.0\"}}, \"paths\": {",
        sp_version());
    put_predict(s, out);
    put_infer(out);
    put_get("/health", "Whether requests are served", "application/json",
            "{\"type\": \"object\", \"required\": [\"status\"], \"properties\": {\"status\": {\"const\": \"ok\"}}}",
            true, false, out);
    put_get("/livez", "Whether the process answers", "application/json", object, false, false, out);
    put_get("/readyz", "The same as /health", "application/json", object, true, false, out);
    put_get("/info", "Model, weights, engine, defaults and limits", "application/json", object, false, true, out);
    put_get("/v1/models", "The model, as a list", "application/json",
            "{\"type\": \"object\", \"required\": [\"object\", \"data\"]}", false, true, out);
    put_get("/metrics", "Counters and histograms for Prometheus", "text/plain", "{\"type\": \"string\"}", false, true,
            out);
    put_get("/v2", "The server, by the Open Inference Protocol", "application/json", object, false, true, out);
    put_get("/v2/health/live", "Whether the process answers", "application/json", object, false, false, out);
    put_get("/v2/health/ready", "Whether requests are served", "application/json", object, true, false, out);
    put_get("/v2/models/superpoint", "The model's tensors", "application/json", object, false, true, out);
    put_get("/v2/models/superpoint/ready", "Whether the model is ready", "application/json", object, true, false, out);
    buffer_text(out, "}, \"components\": {\"schemas\": {");
    put_schemas(s, out);
    buffer_text(out, "}");
    if (s->tokens.demanded)
        buffer_text(out, ", \"securitySchemes\": {\"bearer\": {\"type\": \"http\", \"scheme\": \"bearer\"}}}, "
                         "\"security\": [{\"bearer\": []}");
    else
        buffer_text(out, "}, \"security\": [");
    buffer_text(out, "]}\n");
}
