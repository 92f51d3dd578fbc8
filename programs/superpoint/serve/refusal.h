/* Answers that are sent past the HTTP library, where it cannot queue one; the connection ends with them. */
#ifndef SP_SERVE_REFUSAL_H
#define SP_SERVE_REFUSAL_H

/*
 * Send `{"detail": text}` with that status at once, through the TLS session (a gnutls_session_t) unless
 * it is NULL. `text` is of letters that JSON takes as they are. Best effort: never waits.
 */
void refusal_send(int fd, void *tls_session, int status, const char *text);

#endif
