/* The envelope of typed messages: packets, descriptors, methods. Room: ipc (:wire). Context: any;
 * no allocation, no syscall.
 *
 * One rule: this is all that the channel knows of a message and all that generated bindings know of
 * a channel. Neither includes the other.
 *
 * A message travels over SOCK_SEQPACKET as one packet, or as several when it is large. Every packet
 * starts with the same 16 bytes, little-endian:
 *
 *   0  u8   ML_PACKET_VERSION
 *   1  u8   enum ml_message_kind
 *   2  u8   flags: ML_PACKET_MORE when another packet of this message follows; other bits are 0
 *   3  u8   0
 *   4  u32  method: the @number in the .mojom
 *   8  u32  request id: not 0 where a reply is expected, and the same in that reply; else 0
 *   12 u32  body bytes of the whole message, the same in each of its packets
 *   16      this packet's share of the body: msgpack, see mojom_like_idl/runtime/codec.h
 *
 * The packets of one message follow one another without another message between them. All but the
 * last are ML_PACKET_MAX_BYTES long. Descriptors ride on the first. */
#ifndef MEMLOG_IPC_WIRE_MESSAGE_H
#define MEMLOG_IPC_WIRE_MESSAGE_H

#include <stddef.h>
#include <stdint.h>

#include "ipc/wire/ml_status.h"

enum {
    ML_PACKET_VERSION = 1,
    ML_PACKET_HEADER_BYTES = 16,
    /* Well under the kernel's default SO_SNDBUF (212,992), so that no set-up is needed. */
    ML_PACKET_MAX_BYTES = 65536,
    ML_PACKET_MORE = 1,
    /* Descriptors in one message; idlc refuses contracts that need more. SCM_MAX_FD is 253. */
    ML_HANDLES_MAX = 16
};

enum ml_message_kind { ML_MESSAGE_REQUEST = 1, ML_MESSAGE_REPLY = 2 };

/* What a descriptor must be. */
enum ml_handle_kind {
    ML_HANDLE_PIPE,
    ML_HANDLE_MEMFD, /* sealed against shrinking and growing */
    ML_HANDLE_MEMFD_UNSEALED,
    ML_HANDLE_FILE, /* a regular file */
    ML_HANDLE_SOCKET
};

struct ml_packet_header {
    enum ml_message_kind kind;
    uint32_t flags;
    uint32_t method;
    uint32_t request_id;
    uint32_t body_bytes;
};

/* Write the 16 bytes. Owner: `out_bytes` has ML_PACKET_HEADER_BYTES of room. */
void ml_packet_header_write(const struct ml_packet_header *header, uint8_t *out_bytes);

/* Read and check the 16 bytes in front of a packet.
 *
 * Errors: ML_PEER_SHORT; ML_PEER_VERSION; ML_PEER_UNKNOWN for a kind that does not exist;
 *         ML_PEER_FORM for reserved bits, a reply to request 0, or a share of the body that does
 *         not fit the flags and the total. */
ML_NODISCARD enum ml_status
ml_packet_header_read(const void *packet, size_t packet_bytes, struct ml_packet_header *out_header);

/* The descriptors of one message in the order of its fields. */
struct ml_handles {
    uint32_t count;
    int fds[ML_HANDLES_MAX];
    enum ml_handle_kind kinds[ML_HANDLES_MAX];
};

struct ml_message_type;

/* How values of a kind of types become bytes and back. mojom_like_idl/runtime/codec.h has the only
 * one. */
struct ml_codec {
    /* Write `value` into `buffer`; NULL measures only.
     *
     * Errors: ML_BUG_SPACE; ML_BUG_CONTRACT for a value that the contract does not permit.
     * Owner:  descriptors stay the caller's. */
    enum ml_status (*encode
    )(const struct ml_message_type *type,
      const void *value,
      void *buffer,
      size_t size_bytes,
      size_t *out_count_bytes,
      struct ml_handles *out_handles);
    /* Check a whole body without storing it; returns the memory that it needs and the kinds of
     * descriptors that it declares. Errors: ML_PEER_*. */
    enum ml_status (*check
    )(const struct ml_message_type *type,
      const void *body,
      size_t body_bytes,
      size_t *out_arena_bytes,
      struct ml_handles *out_handles);
    /* Fill *out_value, type->size_bytes long. Strings point into the body, arrays into the arena,
     * descriptors come from `handles`. Errors: ML_PEER_*; ML_BUG_SPACE for a small arena. */
    enum ml_status (*decode
    )(const struct ml_message_type *type,
      const void *body,
      size_t body_bytes,
      const struct ml_handles *handles,
      void *arena,
      size_t arena_bytes,
      void *out_value);
};

/* One message of a contract; generated. */
struct ml_message_type {
    const char *name; /* "Service.Dump" or "Service.Dump reply" */
    enum ml_message_kind kind;
    uint32_t method;
    uint32_t size_bytes;     /* of its C struct */
    uint32_t body_bytes_max; /* on the wire, if every limit is reached */
    const struct ml_codec *codec;
    const void *layout; /* the codec's table */
};

/* The sender of a message, from the kernel (SCM_CREDENTIALS), never from the payload. */
struct ml_peer {
    int32_t pid; /* in our pid namespace; 0: of another one */
    uint32_t uid;
    uint32_t gid;
};

/* A typed function, stored untyped; only its own generated thunk calls it. */
typedef void (*ml_function)(void);

/* Gives a reply to the typed function behind it; generated. `reply` is NULL unless status is ML_OK.
 */
typedef void (*ml_reply_thunk
)(ml_function on_reply, void *context, enum ml_status status, const void *reply);

struct ml_port;

/* One request that came in. May be copied and answered later, as long as the port lives. */
struct ml_call {
    struct ml_port *port;
    uint32_t method;
    uint32_t request_id; /* 0: no reply is expected */
    struct ml_peer peer;
};

/* Where generated stubs send to; ipc/channel/channel.h makes one. */
struct ml_port {
    enum ml_status (*send
    )(struct ml_port *port,
      const struct ml_message_type *type,
      uint32_t request_id,
      const void *value);
    enum ml_status (*call
    )(struct ml_port *port,
      const struct ml_message_type *type,
      const struct ml_message_type *reply_type,
      const void *value,
      ml_reply_thunk thunk,
      ml_function on_reply,
      void *context);
    enum ml_status (*call_wait
    )(struct ml_port *port,
      const struct ml_message_type *type,
      const struct ml_message_type *reply_type,
      const void *value,
      int timeout_ms,
      void *out_reply);
};

struct ml_method {
    const struct ml_message_type *request;
    const struct ml_message_type *reply; /* NULL: none */
};

/* One interface of a contract; generated. */
struct ml_interface {
    const char *name;
    const struct ml_method *methods; /* by ascending number */
    uint32_t method_count;
    /* Call the handler of call->method. Errors: ML_PEER_STATE when there is none. */
    enum ml_status (*dispatch
    )(const void *handlers, void *context, const struct ml_call *call, const void *request);
};

/* The method with this number; NULL: unknown. */
const struct ml_method *ml_interface_method(const struct ml_interface *interface, uint32_t method);

/* An interface with the handlers that serve it; made by the generated *_server(). */
struct ml_server {
    const struct ml_interface *interface;
    const void *handlers;
    void *context;
};

#endif
