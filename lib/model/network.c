#include "model/network.h"

#include "superpoint.h"

const sp_layer sp_network[SP_LAYERS] = {
    {"encoder.conv_blocks.0.conv_a", 3, 1, 64, true, false, 0},
    {"encoder.conv_blocks.0.conv_b", 3, 64, 64, true, true, 0},
    {"encoder.conv_blocks.1.conv_a", 3, 64, 64, true, false, 1},
    {"encoder.conv_blocks.1.conv_b", 3, 64, 64, true, true, 1},
    {"encoder.conv_blocks.2.conv_a", 3, 64, 128, true, false, 2},
    {"encoder.conv_blocks.2.conv_b", 3, 128, 128, true, true, 2},
    {"encoder.conv_blocks.3.conv_a", 3, 128, 128, true, false, 3},
    {"encoder.conv_blocks.3.conv_b", 3, 128, 128, true, false, 3},
    {"keypoint_decoder.conv_score_a", 3, 128, 256, true, false, 3},
    {"keypoint_decoder.conv_score_b", 1, 256, SP_LOGITS, false, false, 3},
    {"descriptor_decoder.conv_descriptor_a", 3, 128, 256, true, false, 3},
    {"descriptor_decoder.conv_descriptor_b", 1, 256, 256, false, false, 3},
};

size_t sp_layer_kernel_size(const sp_layer *layer) {
    return (size_t)layer->out * layer->in * layer->kernel * layer->kernel;
}

uint64_t sp_forward_multiplications(uint32_t width, uint32_t height) {
    uint64_t sum = 0;
    for (int i = 0; i < SP_LAYERS; i++)
        sum += (uint64_t)sp_layer_kernel_size(&sp_network[i]) * (width >> sp_network[i].shrink) *
               (height >> sp_network[i].shrink);
    return sum;
}
