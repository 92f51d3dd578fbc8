/*
 * curl.c - tt-model curl: one request to a server that runs here, without typing the address and the JSON:
 * a picture to POST /predict, or a prompt to POST /v1/chat/completions of servers that chat.
 */
#include "base/fs.h"
#include "base/json.h"
#include "base/ui.h"
#include "cli.h"
#include "hub/http.h"
#include "runtime/port.h"
#include "served.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_PICTURE = 64 << 20, ANSWER_SECONDS = 600 };

typedef struct question {
    char *word;         /* the prompt, or the picture's path */
    json_t *parameters; /* --key value, in the order given */
    const char *picture_type;
    char *base;
} question;

/* A value as JSON has it, when it is JSON: 5, true, null, {"a": 1}; text otherwise. */
static json_t *value_of(const char *text) {
    json_error_t ignored;
    json_t *v = json_loads(text, JSON_DECODE_ANY, &ignored);
    return v ? v : json_string(text);
}

static int read_words(const tm_list *words, question *q, tm_error *e) {
    for (size_t i = 0; i < words->count; i++) {
        const char *w = words->items[i], *eq = strchr(w, '=');
        if (strncmp(w, "--", 2) != 0 && !q->word) {
            q->word = tm_strdup(w);
        } else if (strncmp(w, "--", 2) != 0) {
            tm_fail(e, TM_USAGE, "curl takes one prompt or picture; \"%s\" is a second", w);
            tm_next(e, "Put the prompt in quotes.");
            return TM_USAGE;
        } else if (!eq && i + 1 == words->count) {
            return tm_fail(e, TM_USAGE, "%s needs a value", w);
        } else {
            char *key = eq ? tm_strndup(w + 2, (size_t)(eq - w - 2)) : tm_strdup(w + 2);
            for (char *c = key; *c; c++)
                if (*c == '-')
                    *c = '_';
            json_object_set_new(q->parameters, key, value_of(eq ? eq + 1 : words->items[++i]));
            free(key);
        }
    }
    return TM_OK;
}

/* The content type of a picture file; NULL when the word names none. */
static const char *picture_type(const char *path) {
    unsigned char head[4] = {0};
    FILE *f = path && tm_file_size(path) >= 0 ? fopen(path, "rbe") : NULL;
    size_t n = f ? fread(head, 1, sizeof head, f) : 0;
    if (f)
        fclose(f);
    if (n == 4 && !memcmp(head, "\xff\xd8\xff", 3))
        return "image/jpeg";
    return n == 4 && !memcmp(head, "\x89PNG", 4) ? "image/png" : NULL;
}

/* --base-url, TT_MODEL_BASE_URL, the one server that runs here, or the usual address. */
static int find_base(const tm_args *a, question *q, tm_error *e) {
    const char *given = tm_value(a, "base-url"), *env = getenv("TT_MODEL_BASE_URL");
    given = given ? given : env && *env ? env : NULL;
    if (given) {
        if (!tm_starts_with(given, "http://") && !tm_starts_with(given, "https://"))
            return tm_fail(e, TM_USAGE, "%s is not an address: http://HOST:PORT is wanted", given);
        size_t n = strlen(given);
        if (tm_ends_with(given, "/v1"))
            n -= 3;
        while (n && given[n - 1] == '/')
            n--;
        q->base = tm_strndup(given, n);
        return TM_OK;
    }
    tm_served served;
    int rc = tm_served_list(false, false, &served, e);
    size_t count = json_array_size(served.rows), i;
    json_t *row;
    if (!rc && count > 1) {
        tm_buf names = {0};
        json_array_foreach(served.rows, i, row)
            tm_buf_printf(&names, "%s--base-url http://127.0.0.1:%lld  (%s)", i ? "\n" : "",
                          (long long)tm_json_int(row, "port", 0), tm_json_str_or(row, "name", "?"));
        rc = tm_fail(e, TM_USAGE, "%zu servers run here: say which is meant", count);
        tm_next(e, "%s", names.data);
        tm_buf_free(&names);
    }
    int port = (int)tm_json_int(json_array_get(served.rows, 0), "port", TM_FIRST_PORT);
    q->base = tm_fmt("http://127.0.0.1:%d", port);
    json_decref(served.rows);
    return rc;
}

static int exchange(const question *q, tm_http_request *h, tm_buf *answer, long *status, tm_error *e) {
    tm_http_response r;
    h->cancelled = tm_interrupt_asked;
    h->timeout_s = ANSWER_SECONDS;
    int rc = tm_http(NULL, h, &r, e);
    if (rc == TM_OFFLINE) {
        tm_fail(e, TM_TOOL_FAILED, "nothing answers at %s", q->base);
        tm_next(e, "`tt-model ps` shows what is served; --base-url names another address.");
        rc = TM_TOOL_FAILED;
    }
    if (!rc) {
        *status = r.status;
        tm_buf_add(answer, r.body.data ? r.body.data : "", r.body.len);
        tm_http_response_free(&r);
    }
    return rc;
}

/* {"detail": …} and {"error": …} are what servers say of a refusal. */
static int refused(long status, const tm_buf *answer, tm_error *e) {
    json_error_t ignored;
    json_t *doc = json_loadb(answer->data, answer->len, 0, &ignored);
    const char *detail = tm_json_str(doc, "detail");
    if (!detail)
        detail = tm_json_str(doc, "error");
    if (!detail)
        detail = tm_json_str(json_object_get(doc, "error"), "message");
    tm_fail(e, TM_TOOL_FAILED, "the server answers %ld", status);
    tm_why(e, "%.500s", detail ? detail : answer->len ? answer->data : "");
    json_decref(doc);
    return TM_TOOL_FAILED;
}

static char *query_text(const json_t *parameters) {
    tm_buf b = {0};
    const char *key;
    json_t *v;
    json_object_foreach((json_t *)parameters, key, v) {
        char *text =
            json_is_string(v) ? tm_strdup(json_string_value(v)) : json_dumps(v, JSON_COMPACT | JSON_ENCODE_ANY);
        char *k = tm_url_escape(key, false), *w = tm_url_escape(text, false);
        tm_buf_printf(&b, "%s%s=%s", b.len ? "&" : "?", k, w);
        free(text);
        free(k);
        free(w);
    }
    return tm_buf_take(&b);
}

static void print_command(const char *const *words) {
    tm_buf b = {0};
    for (; *words; words++) {
        if (b.len)
            tm_buf_puts(&b, " ");
        tm_buf_shell_word(&b, *words);
    }
    puts(b.data);
    tm_buf_free(&b);
}

static int send_picture(const question *q, bool print, tm_error *e) {
    char *query = query_text(q->parameters), *url = tm_fmt("%s/predict%s", q->base, query);
    char *header = tm_fmt("Content-Type: %s", q->picture_type), *file = tm_fmt("@%s", q->word);
    tm_buf data = {0}, answer = {0};
    int rc = TM_OK;
    if (print) {
        print_command((const char *const[]){"curl", "--data-binary", file, "-H", header, url, NULL});
    } else {
        long status = 0;
        tm_list headers = {0};
        tm_list_add(&headers, header);
        rc = tm_read_file(q->word, MAX_PICTURE, &data, e);
        tm_http_request h = {
            .method = "POST", .url = url, .headers = &headers, .body = data.data, .body_len = data.len};
        if (!rc)
            rc = exchange(q, &h, &answer, &status, e);
        if (!rc && status >= 300)
            rc = refused(status, &answer, e);
        if (!rc)
            printf("%s%s", answer.data ? answer.data : "",
                   answer.len && answer.data[answer.len - 1] == '\n' ? "" : "\n");
        tm_list_free(&headers);
    }
    tm_buf_free(&data);
    tm_buf_free(&answer);
    free(query);
    free(url);
    free(header);
    free(file);
    return rc;
}

/* The id of the first model that the server names. */
static int model_of(const question *q, char **model, tm_error *e) {
    char *url = tm_fmt("%s/v1/models", q->base);
    tm_buf answer = {0};
    long status = 0;
    json_t *doc = NULL;
    int rc = exchange(q, &(tm_http_request){.url = url}, &answer, &status, e);
    if (!rc && status >= 300)
        rc = refused(status, &answer, e);
    if (!rc)
        rc = tm_json_parse(answer.data ? answer.data : "", answer.len, url, &doc, e);
    const char *id = tm_json_str(json_array_get(json_object_get(doc, "data"), 0), "id");
    if (!rc && !id)
        rc = tm_fail(e, TM_TOOL_FAILED, "%s names no model", url);
    *model = id ? tm_strdup(id) : NULL;
    json_decref(doc);
    tm_buf_free(&answer);
    free(url);
    return rc;
}

static int show_completion(const tm_buf *answer, tm_error *e) {
    json_t *doc = NULL;
    int rc = tm_json_parse(answer->data ? answer->data : "", answer->len, "the server's answer", &doc, e);
    if (rc)
        return rc;
    const char *text =
        tm_json_str(json_object_get(json_array_get(json_object_get(doc, "choices"), 0), "message"), "content");
    if (text && !tm_ui_json())
        puts(text);
    else
        tm_json_print(doc);
    json_decref(doc);
    return TM_OK;
}

static int no_chat(const question *q, const char *model, tm_error *e) {
    tm_fail(e, TM_UNSUPPORTED, "%s does not chat", model);
    tm_why(e, "The server at %s has no /v1/chat/completions.", q->base);
    tm_next(e, "`tt-model curl photo.jpg` sends a picture to POST /predict.\n%s/docs tells what it takes.", q->base);
    return TM_UNSUPPORTED;
}

static int send_prompt(const question *q, const char *given_model, bool print, tm_error *e) {
    char *model = given_model ? tm_strdup(given_model) : NULL, *url = tm_fmt("%s/v1/chat/completions", q->base);
    int rc = model ? TM_OK : model_of(q, &model, e);
    if (!rc) {
        json_t *doc = json_pack("{s:s, s:[{s:s, s:s}]}", "model", model, "messages", "role", "user", "content",
                                q->word ? q->word : "Hello!");
        json_object_update(doc, q->parameters);
        char *text = json_dumps(doc, JSON_COMPACT);
        static char type[] = "Content-Type: application/json";
        if (print) {
            print_command((const char *const[]){"curl", url, "-H", type, "-d", text, NULL});
        } else {
            tm_buf answer = {0};
            long status = 0;
            tm_list headers = {0};
            tm_list_add(&headers, type);
            tm_http_request h = {
                .method = "POST", .url = url, .headers = &headers, .body = text, .body_len = strlen(text)};
            rc = exchange(q, &h, &answer, &status, e);
            if (!rc && (status == 404 || status == 405))
                rc = no_chat(q, model, e);
            else if (!rc && status >= 300)
                rc = refused(status, &answer, e);
            else if (!rc)
                rc = show_completion(&answer, e);
            tm_list_free(&headers);
            tm_buf_free(&answer);
        }
        free(text);
        json_decref(doc);
    }
    free(model);
    free(url);
    return rc;
}

int tm_cmd_curl(const tm_args *a, tm_error *e) {
    question q = {.parameters = json_object()};
    int rc = read_words(&a->passed, &q, e);
    if (!rc)
        rc = find_base(a, &q, e);
    if (!rc) {
        bool print = tm_flag(a, "print");
        q.picture_type = picture_type(q.word);
        rc = q.picture_type ? send_picture(&q, print, e) : send_prompt(&q, tm_value(a, "model"), print, e);
    }
    json_decref(q.parameters);
    free(q.word);
    free(q.base);
    return rc;
}
