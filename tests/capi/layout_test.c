/* What a C program sees: values, sizes and offsets of the published interface, and a transfer written in C11.
 * layout_test.cpp runs these functions. Each returns NULL when all is well, else the words for what is not. */
#include "tests/capi/layout_test.h"

#include <sdr/sdr.h>
#include <sdr/sdr_mr.h>
#include <stdbool.h>
#include <string.h>

_Static_assert(SDR_SUCCESS == 0 && SDR_ERROR == 1 && SDR_RETRY == 2, "enum sdr_errcode");
_Static_assert(SDR_MTU_64 == 0 && SDR_MTU_128 == 1 && SDR_MTU_256 == 2 && SDR_MTU_512 == 3, "enum sdr_mtu");
_Static_assert(SDR_MTU_1024 == 4 && SDR_MTU_2048 == 5 && SDR_MTU_4096 == 6, "enum sdr_mtu");
_Static_assert(SDR_WR_WRITE == 0 && SDR_WR_WRITE_WITH_IMM == 1, "enum sdr_wr_opcode");
_Static_assert(SDR_ACCESS_REMOTE_WRITE == 0, "enum sdr_access_flags");

#define CHECK_LAYOUT(type, member, at) \
  if (offsetof(type, member) != (at)) return #type "." #member " is not at byte " #at
#define CHECK_SIZE(type, bytes) \
  if (sizeof(type) != (bytes)) return #type " has not " #bytes " bytes"

const char* check_layouts(void) {
  CHECK_SIZE(struct sdr_dev_attr, 8);
  CHECK_LAYOUT(struct sdr_dev_attr, num_channels, 0);
  CHECK_LAYOUT(struct sdr_dev_attr, log_max_qps, 4);
  CHECK_SIZE(struct sdr_qp_attr, 32);
  CHECK_LAYOUT(struct sdr_qp_attr, bitmap_chunk_size_log_bytes, 0);
  CHECK_LAYOUT(struct sdr_qp_attr, max_in_flight_log_bytes, 8);
  CHECK_LAYOUT(struct sdr_qp_attr, max_log_num_msgs, 16);
  CHECK_LAYOUT(struct sdr_qp_attr, mtu, 20);
  CHECK_LAYOUT(struct sdr_qp_attr, send_enable, 24);
  CHECK_LAYOUT(struct sdr_qp_attr, recv_enable, 25);
  CHECK_LAYOUT(struct sdr_qp_attr, rate_limit, 28);
  CHECK_SIZE(struct sdr_send_wr, 32);
  CHECK_LAYOUT(struct sdr_send_wr, opcode, 0);
  CHECK_LAYOUT(struct sdr_send_wr, imm_value, 4);
  CHECK_LAYOUT(struct sdr_send_wr, length, 8);
  CHECK_LAYOUT(struct sdr_send_wr, lkey, 12);
  CHECK_LAYOUT(struct sdr_send_wr, local_addr, 16);
  CHECK_LAYOUT(struct sdr_send_wr, remote_offset, 24);
  CHECK_SIZE(struct sdr_send_start_wr, 8);
  CHECK_LAYOUT(struct sdr_send_start_wr, opcode, 0);
  CHECK_LAYOUT(struct sdr_send_start_wr, imm_value, 4);
  CHECK_SIZE(struct sdr_send_continue_wr, 32);
  CHECK_LAYOUT(struct sdr_send_continue_wr, length, 0);
  CHECK_LAYOUT(struct sdr_send_continue_wr, local_addr, 8);
  CHECK_LAYOUT(struct sdr_send_continue_wr, lkey, 16);
  CHECK_LAYOUT(struct sdr_send_continue_wr, remote_offset, 24);
  CHECK_SIZE(struct sdr_recv_wr, 16);
  CHECK_LAYOUT(struct sdr_recv_wr, max_length, 0);
  CHECK_LAYOUT(struct sdr_recv_wr, lkey, 4);
  CHECK_LAYOUT(struct sdr_recv_wr, address, 8);
  CHECK_SIZE(struct sdr_send_status, 4);
  CHECK_LAYOUT(struct sdr_send_status, flags, 0);
  return NULL;
}

/* Every call, and a failed one as the reason when it is not SDR_SUCCESS. */
#define MUST(call) \
  if ((call) != SDR_SUCCESS) return sdr_last_error()
#define MUST_BE(condition) \
  if (!(condition)) return "not so: " #condition

const char* transfer_in_c(void) {
  static uint8_t out[3000];
  static uint8_t in[3000];
  uint8_t info_a[4096];
  uint8_t info_b[4096];
  size_t info_size = 0;
  for (size_t i = 0; i < sizeof out; ++i) out[i] = (uint8_t)(i * 7);
  memset(in, 0, sizeof in);

  struct sdr_dev_attr device = {.num_channels = 2, .log_max_qps = 1};
  struct sdr_context* context = sdr_context_create(NULL, &device);
  if (context == NULL) return sdr_last_error();
  struct sdr_qp_attr attributes = {.bitmap_chunk_size_log_bytes = 10,
                                   .max_in_flight_log_bytes = 16,
                                   .max_log_num_msgs = 4,
                                   .mtu = SDR_MTU_512,
                                   .send_enable = 1,
                                   .recv_enable = 1,
                                   .rate_limit = 0};
  struct sdr_qp* a = sdr_qp_create(context, &attributes);
  struct sdr_qp* b = sdr_qp_create(context, &attributes);
  if (a == NULL || b == NULL) return sdr_last_error();
  MUST(sdr_qp_info_size_get(a, &info_size));
  MUST_BE(info_size <= sizeof info_a);
  MUST(sdr_qp_info_get(a, info_a));
  MUST(sdr_qp_info_get(b, info_b));
  MUST(sdr_qp_connect(a, info_b));
  MUST(sdr_qp_connect(b, info_a));

  struct sdr_mr* out_region = sdr_mr_reg(context, out, sizeof out, SDR_ACCESS_REMOTE_WRITE);
  struct sdr_mr* in_region = sdr_mr_reg(context, in, sizeof in, SDR_ACCESS_REMOTE_WRITE);
  if (out_region == NULL || in_region == NULL) return sdr_last_error();
  struct sdr_recv_wr receive = {.max_length = sizeof in, .address = (uint64_t)(uintptr_t)in};
  struct sdr_send_wr send = {.opcode = SDR_WR_WRITE_WITH_IMM,
                             .imm_value = 0xC0FFEE42U,
                             .length = sizeof out,
                             .local_addr = (uint64_t)(uintptr_t)out};
  uint32_t rkey = 0;
  MUST(sdr_mr_lkey_get(in_region, &receive.lkey));
  MUST(sdr_mr_lkey_get(out_region, &send.lkey));
  MUST(sdr_mr_rkey_get(in_region, &rkey));

  struct sdr_recv_handle* incoming = NULL;
  struct sdr_send_handle* outgoing = NULL;
  uint8_t* bitmap = NULL;
  size_t bitmap_size = 0;
  uint32_t immediate = 0;
  uint64_t packets = 0;
  int completed = 0;
  int code = SDR_SUCCESS;
  MUST(sdr_recv_post(b, &receive, &incoming));
  MUST(sdr_recv_bitmap_get(incoming, &bitmap, &bitmap_size));
  MUST_BE(bitmap_size == 1);
  while ((code = sdr_send_post(a, &send, &outgoing)) == SDR_RETRY) {
  }
  MUST_BE(code == SDR_SUCCESS);
  while (!completed) MUST(sdr_send_poll(outgoing, &completed, NULL));
  while (__atomic_load_n(bitmap, __ATOMIC_ACQUIRE) != 0x07) {
  }
  while ((code = sdr_recv_imm_get(incoming, &immediate)) == SDR_RETRY) {
  }
  MUST_BE(code == SDR_SUCCESS && immediate == 0xC0FFEE42U);
  MUST(sdr_recv_bitmap_chunk_expand(incoming, 0, &packets));
  MUST_BE(packets == 3);
  MUST(sdr_recv_complete(incoming));
  MUST_BE(memcmp(in, out, sizeof in) == 0);

  MUST(sdr_mr_dereg(out_region));
  MUST(sdr_mr_dereg(in_region));
  MUST(sdr_qp_destroy(a));
  MUST(sdr_qp_destroy(b));
  MUST(sdr_context_destroy(context));
  return NULL;
}
