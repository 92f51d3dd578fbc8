# IN, a file of bytes, becomes OUT, a C array sp_bh_image_NAME and its size.
file(READ ${IN} hex HEX)
string(REGEX REPLACE "([0-9a-f][0-9a-f])" "0x\\1," bytes "${hex}")
string(REGEX REPLACE "(0x..,0x..,0x..,0x..,0x..,0x..,0x..,0x..,0x..,0x..,0x..,0x..,0x..,0x..,0x..,0x..,)" "\\1\n" bytes
  "${bytes}")
file(WRITE ${OUT} "/* Made from ${NAME}.c by the build. */
#include \"firmware.h\"

const unsigned char sp_bh_image_${NAME}[] = {
${bytes}};
const unsigned int sp_bh_image_${NAME}_bytes = sizeof sp_bh_image_${NAME};
")
