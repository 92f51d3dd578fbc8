/* Telling systemd (Type=notify) how the service is. */
#ifndef SP_SERVE_NOTIFY_H
#define SP_SERVE_NOTIFY_H

/* Send `state` ("READY=1", "STOPPING=1") to the socket that NOTIFY_SOCKET names; nothing without one. */
void notify_manager(const char *state);

#endif
