/* Memory regions of the C API: memory that messages are sent from and land in.
 *
 * Sends and receives name a region by its lkey, and their bytes must lie inside it. A region may be used by all QPs of
 * its context, from any thread. Errors and threads: sdr.h.
 */
#ifndef SDR_SDR_MR_H
#define SDR_SDR_MR_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

enum sdr_access_flags { SDR_ACCESS_REMOTE_WRITE = 0 };

struct sdr_context;
struct sdr_mr;

/* NULL: addr is NULL, length is 0, or the device refuses. The memory stays the caller's. Regions may overlap. */
struct sdr_mr* sdr_mr_reg(struct sdr_context* context, void* addr, size_t length, enum sdr_access_flags access);
/* After the messages that use it are complete; its lkey names nothing afterwards and is not given out again. */
int sdr_mr_dereg(struct sdr_mr* mr);
int sdr_mr_lkey_get(struct sdr_mr* mr, uint32_t* lkey);
/* For programs that exchange keys; libsdr aims by receive slot and needs none from the peer. */
int sdr_mr_rkey_get(struct sdr_mr* mr, uint32_t* rkey);

#ifdef __cplusplus
}
#endif

#endif
