/* clang's own intrinsics ask for a file of this name: gmux_device.h has what goes in it. */
