/* A message between two processes with the C API: open, connect, post, poll the bitmap, complete.
 *
 *   cc c_transfer.c -lsdr && ./a.out
 *   SDR_LINK=rtt=20ms,rate=1Gbit,loss=1e-3 ./a.out      the same over a long, lossy path
 */
#include <sdr/sdr.h>
#include <sdr/sdr_mr.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

enum { kLogChunk = 16, kLogMessage = 20, kBytes = 1 << kLogMessage, kChunks = kBytes >> kLogChunk };

/* What byte i of the message should be. */
static char pattern(int i) {
  return (char)((i * 31 + i / 251) % 128);
}

static void must(int ok, const char* what) {
  if (ok) return;
  fprintf(stderr, "%s: %s\n", what, sdr_last_error());
  exit(1);
}

/* Messages of 1 MiB, four of them in flight, a bit of the bitmap for every 64 KiB. */
static struct sdr_qp* connect_to_peer(struct sdr_context* context, int peer) {
  struct sdr_qp_attr attributes = {.bitmap_chunk_size_log_bytes = kLogChunk,
                                   .max_in_flight_log_bytes = kLogMessage + 2,
                                   .max_log_num_msgs = 2,
                                   .mtu = SDR_MTU_1024,
                                   .send_enable = 1,
                                   .recv_enable = 1};
  struct sdr_qp* qp = sdr_qp_create(context, &attributes);
  must(qp != NULL, "sdr_qp_create");
  size_t size = 0;
  must(sdr_qp_info_size_get(qp, &size) == SDR_SUCCESS, "sdr_qp_info_size_get");
  char* info = malloc(size);
  must(sdr_qp_info_get(qp, info) == SDR_SUCCESS, "sdr_qp_info_get");
  must(write(peer, info, size) == (ssize_t)size, "write"); /* any way to carry it will do */
  must(recv(peer, info, size, MSG_WAITALL) == (ssize_t)size, "recv");
  must(sdr_qp_connect(qp, info) == SDR_SUCCESS, "sdr_qp_connect");
  free(info);
  return qp;
}

static void send_message(struct sdr_qp* qp, char* bytes, uint32_t lkey, int peer) {
  struct sdr_send_start_wr start = {.opcode = SDR_WR_WRITE_WITH_IMM, .imm_value = 2025};
  struct sdr_send_continue_wr all = {.length = kBytes, .local_addr = (uintptr_t)bytes, .lkey = lkey};
  struct sdr_send_handle* send = NULL;
  int code = SDR_RETRY;
  while ((code = sdr_streaming_send_start(qp, &start, &send)) == SDR_RETRY) usleep(100); /* receive not posted yet */
  must(code == SDR_SUCCESS, "sdr_streaming_send_start");
  must(sdr_streaming_send_continue(send, &all) == SDR_SUCCESS, "sdr_streaming_send_continue");
  /* Reliability is ours to choose. Here: the receiver names chunks that it misses, and they are sent again. */
  for (uint32_t chunk = 0; read(peer, &chunk, sizeof chunk) == sizeof chunk && chunk < kChunks;) {
    struct sdr_send_continue_wr again = {.length = 1 << kLogChunk,
                                         .local_addr = (uintptr_t)bytes + (chunk << kLogChunk),
                                         .lkey = lkey,
                                         .remote_offset = chunk};
    must(sdr_streaming_send_continue(send, &again) != SDR_ERROR, "sdr_streaming_send_continue");
  }
  must(sdr_streaming_send_end(send) == SDR_SUCCESS, "sdr_streaming_send_end");
}

static int receive_message(struct sdr_qp* qp, char* bytes, uint32_t lkey, int peer) {
  struct sdr_recv_wr wr = {.max_length = kBytes, .lkey = lkey, .address = (uintptr_t)bytes};
  struct sdr_recv_handle* receive = NULL;
  uint8_t* bitmap = NULL;
  size_t size = 0;
  uint32_t imm = 0;
  must(sdr_recv_post(qp, &wr, &receive) == SDR_SUCCESS, "sdr_recv_post");
  must(sdr_recv_bitmap_get(receive, &bitmap, &size) == SDR_SUCCESS, "sdr_recv_bitmap_get");
  for (uint32_t chunk = 0, waits = 0; chunk < kChunks;) {
    if (__atomic_load_n(&bitmap[chunk / 8], __ATOMIC_ACQUIRE) >> (chunk % 8) & 1) {
      ++chunk; /* its bytes are in our buffer */
      waits = 0;
    } else {
      usleep(100);
      if (++waits % 1000 == 0) must(write(peer, &chunk, sizeof chunk) == sizeof chunk, "write");
    }
  }
  must(sdr_recv_imm_get(receive, &imm) == SDR_SUCCESS, "sdr_recv_imm_get");
  must(sdr_recv_complete(receive) == SDR_SUCCESS, "sdr_recv_complete");
  const uint32_t done = kChunks;
  must(write(peer, &done, sizeof done) == sizeof done, "write");
  int wrong = 0;
  for (int i = 0; i < kBytes; ++i) wrong += bytes[i] != pattern(i);
  printf("received %d bytes in %d chunks, %d wrong, immediate %u\n", kBytes, kChunks, wrong, imm);
  return wrong != 0;
}

int main(void) {
  int ends[2];
  must(socketpair(AF_UNIX, SOCK_STREAM, 0, ends) == 0, "socketpair");
  const pid_t child = fork(); /* before the context: its threads do not survive a fork */
  must(child >= 0, "fork");
  const int sender = child == 0;
  const int peer = ends[sender];
  close(ends[!sender]);
  struct sdr_dev_attr device = {.num_channels = 2, .log_max_qps = 0};
  struct sdr_context* context = sdr_context_create("udp:127.0.0.1", &device);
  must(context != NULL, "sdr_context_create");
  char* bytes = malloc(kBytes);
  memset(bytes, 0, kBytes);
  for (int i = 0; sender && i < kBytes; ++i) bytes[i] = pattern(i);
  struct sdr_mr* region = sdr_mr_reg(context, bytes, kBytes, SDR_ACCESS_REMOTE_WRITE);
  uint32_t lkey = 0;
  must(sdr_mr_lkey_get(region, &lkey) == SDR_SUCCESS, "sdr_mr_lkey_get");
  struct sdr_qp* qp = connect_to_peer(context, peer);
  int failed = 0;
  if (sender) send_message(qp, bytes, lkey, peer);
  if (!sender) failed = receive_message(qp, bytes, lkey, peer);
  int status = 0;
  if (!sender) failed = (wait(&status) < 0 || status != 0) || failed;
  must(sdr_qp_destroy(qp) == SDR_SUCCESS && sdr_mr_dereg(region) == SDR_SUCCESS, "sdr_qp_destroy");
  must(sdr_context_destroy(context) == SDR_SUCCESS, "sdr_context_destroy");
  free(bytes);
  return failed;
}
