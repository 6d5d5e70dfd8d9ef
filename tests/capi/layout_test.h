/* The functions of layout_test.c, which is compiled as C11, for the tests that run them. */
#ifndef SDR_TESTS_CAPI_LAYOUT_TEST_H
#define SDR_TESTS_CAPI_LAYOUT_TEST_H

#ifdef __cplusplus
extern "C" {
#endif

const char* check_layouts(void);
const char* transfer_in_c(void);

#ifdef __cplusplus
}
#endif

#endif
