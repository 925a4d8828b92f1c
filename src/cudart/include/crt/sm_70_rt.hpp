/* clang's intrinsics include a file of this name; gmux_device.h has what belongs in it. */
