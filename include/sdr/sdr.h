/* libsdr for C: messages of chunks over an unreliable packet transport, with partial completion.
 *
 * Model: the n-th send fills the n-th posted receive. While a message is arriving the receiver polls a bitmap with one
 * bit a chunk (a power-of-two number of packets); what to do about chunks that are missing is the caller's affair. The
 * library sends nothing twice by itself.
 *
 * Results: int functions return an enum sdr_errcode. SDR_RETRY means "not now" (no free slot, no clear-to-send yet):
 * nothing has happened, call again. Functions that make something return NULL on error. sdr_last_error() has the words.
 * A NULL argument where none is allowed is an SDR_ERROR.
 *
 * Threads: any thread may call anything; calls on one QP take turns under its lock, except reading the bitmap, which
 * takes none. Nothing may use an object while or after another thread destroys it. The library drives its QPs by
 * threads of its own, at most one a core, which sleep when there is nothing to do. They do not survive a fork: create
 * contexts after it.
 *
 * Source: SDR-RDMA (SC'25), section 3. Names, values and layouts are those of the API that its authors published; what
 * is ours beyond it says so. docs/c-api.md has the environment variables.
 */
#ifndef SDR_SDR_H
#define SDR_SDR_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

enum sdr_errcode {
  SDR_SUCCESS = 0,
  SDR_ERROR = 1, /* will not work; sdr_last_error() says why */
  SDR_RETRY = 2  /* not now, for want of resources; nothing has happened, call again */
};

/* Payload bytes of a full packet. */
enum sdr_mtu { SDR_MTU_64, SDR_MTU_128, SDR_MTU_256, SDR_MTU_512, SDR_MTU_1024, SDR_MTU_2048, SDR_MTU_4096 };

enum sdr_wr_opcode {
  SDR_WR_WRITE,
  SDR_WR_WRITE_WITH_IMM /* delivers imm_value with the message: sdr_recv_imm_get() */
};

struct sdr_dev_attr {
  uint32_t num_channels; /* a QP: 1 to 255; packets go round-robin over them, each is received by itself */
  uint32_t log_max_qps;  /* at most 2^log_max_qps QPs at a time, 0 to 16 */
};

struct sdr_qp_attr {
  uint32_t bitmap_chunk_size_log_bytes; /* a chunk, one bit of the bitmap, has 2^this bytes; at least one MTU */
  size_t max_in_flight_log_bytes;       /* the largest message is 2^(this - max_log_num_msgs) bytes */
  uint32_t max_log_num_msgs;            /* messages in flight: 2^this, 0 to 10 */
  enum sdr_mtu mtu;
  uint8_t send_enable; /* 0: this QP will not send */
  uint8_t recv_enable; /* 0: this QP will not receive */
  uint32_t rate_limit; /* Mbit/s of payload, 0 for none (the unit is our definition) */
};

struct sdr_send_wr {
  enum sdr_wr_opcode opcode;
  uint32_t imm_value; /* with SDR_WR_WRITE_WITH_IMM */
  uint32_t length;    /* bytes, 0 allowed */
  uint32_t lkey;      /* of the region that holds the bytes */
  uint64_t local_addr;
  uint64_t remote_offset; /* in chunks from the start of the receive */
};

struct sdr_send_start_wr {
  enum sdr_wr_opcode opcode;
  uint32_t imm_value; /* with SDR_WR_WRITE_WITH_IMM */
};

struct sdr_send_continue_wr {
  uint32_t length; /* bytes */
  uint64_t local_addr;
  uint32_t lkey;
  uint64_t remote_offset; /* in chunks from the start of the receive */
};

struct sdr_recv_wr {
  uint32_t max_length; /* bytes, 0 allowed; at most the largest message */
  uint32_t lkey;       /* of the region that holds the buffer */
  uint64_t address;
};

struct sdr_send_status {
  uint32_t flags; /* 0 */
};

struct sdr_context;
struct sdr_qp;
struct sdr_send_handle;
struct sdr_recv_handle;

/* The words for the last call on this thread that gave SDR_ERROR, SDR_RETRY or NULL; "" if there was none. Never NULL;
 * valid until the next such call on this thread. Our extension. */
const char* sdr_last_error(void);

/* --- devices ---
 * dev_name: "udp" (also NULL and ""), "udp:192.0.2.7", "udp:2001:db8::7", "udp:eth0"; RDMA: "mlx5_0", "mlx5_0,gid=3".
 * An unknown name is an error that lists the known ones. */
struct sdr_context* sdr_context_create(const char* dev_name, struct sdr_dev_attr* attr);
/* SDR_ERROR, and nothing done, while it has QPs or memory regions. */
int sdr_context_destroy(struct sdr_context* context);

/* --- queue pairs (section 3.1) --- */
struct sdr_qp* sdr_qp_create(struct sdr_context* context, struct sdr_qp_attr* attr);
/* Safe with messages in flight: when it returns, no packet touches a buffer or bitmap any more, and every handle of
 * the QP is gone with it. */
int sdr_qp_destroy(struct sdr_qp* qp);

/* How many bytes sdr_qp_info_get() writes: the same for every QP of this version of the library. */
int sdr_qp_info_size_get(struct sdr_qp* qp, size_t* size);
/* What the application carries to the peer's sdr_qp_connect(), as opaque bytes. Holds a secret of the QP. */
int sdr_qp_info_get(struct sdr_qp* qp, void* info);
/* remote_info: the bytes of the peer's sdr_qp_info_get(). SDR_ERROR names the attribute that differs and both values.
 * From here on the library drives the QP. Receives may be posted before; sends are SDR_RETRY until the peer connects.
 */
int sdr_qp_connect(struct sdr_qp* qp, void* remote_info);

/* --- receive (section 3.2) ---
 * Posts the buffer for the next message. SDR_RETRY: all slots are in use. The buffer must live until
 * sdr_recv_complete() or sdr_qp_destroy(). */
int sdr_recv_post(struct sdr_qp* qp, struct sdr_recv_wr* wr, struct sdr_recv_handle** handle);
/* The imm_value of the sender; SDR_RETRY until all packets that carry a part of it have arrived. */
int sdr_recv_imm_get(struct sdr_recv_handle* handle, uint32_t* imm);
/* The live bitmap: chunk i is bit i % 8 of byte i / 8, set when all its bytes are in the buffer. size is in bytes and
 * covers max_length, rounded up. A short message leaves the bits behind its end 0. Read it with acquire order, for
 * instance __atomic_load_n(&bitmap[i / 8], __ATOMIC_ACQUIRE); it is aligned to 8 bytes and may be read in whole 64-bit
 * words, too. Valid until sdr_recv_complete(). A chunk that is there may be read; write to it only after
 * sdr_recv_complete(), because a packet that comes twice is placed twice, the same bytes, as by a NIC. */
int sdr_recv_bitmap_get(struct sdr_recv_handle* handle, uint8_t** bitmap, size_t* size);
/* Which packets of one chunk have arrived. With n packets a chunk, n <= 64, bit i is packet i and bits from n on are 0.
 * With more, bit i stands for packets [i * n/64, (i + 1) * n/64) and is set when all of them have arrived. Packets past
 * the end of the posted buffer count as arrived. */
int sdr_recv_bitmap_chunk_expand(struct sdr_recv_handle* handle, uint32_t chunk, uint64_t* packets);
/* Ends the receive, chunks missing or not, and frees its slot and handle. When it returns no packet, however late,
 * touches the buffer or the bitmap any more (section 3.3). */
int sdr_recv_complete(struct sdr_recv_handle* handle);

/* --- send --- */
/* One shot: the whole message. SDR_RETRY: the receive that it would fill is not known to be posted yet (CTS), or too
 * many sends are waiting. SDR_ERROR: longer than that receive. The bytes must stay until sdr_send_poll() says so. */
int sdr_send_post(struct sdr_qp* qp, struct sdr_send_wr* wr, struct sdr_send_handle** handle);
/* Streaming: the message stays open; bytes may go to any chunk, in any order, more than once (retransmission). */
int sdr_streaming_send_start(struct sdr_qp* qp, struct sdr_send_start_wr* wr, struct sdr_send_handle** handle);
int sdr_streaming_send_continue(struct sdr_send_handle* handle, struct sdr_send_continue_wr* wr);
/* Ends it: what is left of imm_value is sent, nothing more can be added. SDR_RETRY: too much is waiting. */
int sdr_streaming_send_end(struct sdr_send_handle* handle);
/* completed: 1 when every packet given so far has been injected and the bytes may be reused, which says nothing about
 * their arrival; else 0. status may be NULL. A handle lives until its QP is destroyed and is taken for a later send
 * when 2^max_log_num_msgs more have been posted, so that a very late poll answers for that one: never too early. */
int sdr_send_poll(struct sdr_send_handle* handle, int* completed, struct sdr_send_status* status);

#ifdef __cplusplus
}
#endif

#endif
