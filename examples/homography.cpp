// The homography between two pictures: keypoints and matches by superpoint, the rest by OpenCV.
//
//     c++ homography.cpp $(pkg-config --cflags --libs superpoint opencv4) -o homography
//     ./homography WEIGHTS left.jpg right.jpg
//
// Shows how the library's memory meets OpenCV's: an sp_image looks at a cv::Mat's pixels, and the
// descriptors become a cv::Mat without a copy.
#include <superpoint.h>

#include <cstdio>
#include <memory>
#include <opencv2/calib3d.hpp>
#include <opencv2/imgcodecs.hpp>
#include <opencv2/imgproc.hpp>
#include <stdexcept>
#include <vector>

namespace {

void check(sp_status status, const sp_error &err) {
    if (status != SP_OK)
        throw std::runtime_error(err.text);
}

// Owners of the library's objects.
using Model = std::unique_ptr<sp_model, decltype(&sp_model_free)>;
using Engine = std::unique_ptr<sp_engine, decltype(&sp_engine_free)>;
using Matcher = std::unique_ptr<sp_matcher, decltype(&sp_matcher_free)>;

struct Features {
    std::vector<cv::Point2f> points;
    cv::Mat descriptors; // count x 256, CV_32F
};

Features detect(sp_engine *engine, const cv::Mat &bgr) {
    cv::Mat rgb;
    cv::cvtColor(bgr, rgb, cv::COLOR_BGR2RGB);
    sp_params params;
    sp_params_default(&params);
    params.channel = SP_CHANNEL_LUMA;
    params.coordinates = SP_COORDINATES_CENTRE; // OpenCV's: pixel centres are integers
    params.descriptor_dtype = SP_DTYPE_FLOAT32;
    const sp_image view = {static_cast<uint32_t>(rgb.cols), static_cast<uint32_t>(rgb.rows), 3, rgb.step, rgb.data};
    sp_frame frame = {};
    sp_maps maps = {};
    sp_features found = {};
    sp_error err = {};
    sp_status status = sp_frame_from_image(&view, &params, &frame, &err);
    const sp_frame *frames[] = {&frame};
    if (status == SP_OK)
        status = sp_engine_run(engine, frames, 1, &maps, &err);
    if (status == SP_OK)
        status = sp_features_extract(&maps, &frame, &params, &found, &err);
    Features result;
    if (status == SP_OK) {
        const auto *points = reinterpret_cast<const cv::Point2f *>(found.keypoints);
        result.points.assign(points, points + found.count);
        result.descriptors =
            cv::Mat(static_cast<int>(found.count), SP_DESCRIPTOR_DIM, CV_32F, found.descriptors).clone();
    }
    sp_features_free(&found);
    sp_maps_free(&maps);
    sp_frame_free(&frame);
    check(status, err);
    return result;
}

sp_descriptors view_of(const cv::Mat &descriptors) {
    return {descriptors.data, static_cast<size_t>(descriptors.rows), SP_DTYPE_FLOAT32};
}

int run(const char *weights, const char *const names[2]) {
    sp_error err = {};
    sp_model *model_made = nullptr;
    check(sp_model_open(weights, nullptr, &model_made, &err), err);
    const Model model(model_made, sp_model_free);
    sp_engine *engine_made = nullptr;
    check(sp_engine_create(model.get(), nullptr, &engine_made, &err), err);
    const Engine engine(engine_made, sp_engine_free);
    sp_matcher *matcher_made = nullptr;
    check(sp_matcher_create(nullptr, &matcher_made, &err), err);
    const Matcher matcher(matcher_made, sp_matcher_free);

    Features features[2];
    for (int i = 0; i < 2; i++) {
        const cv::Mat picture = cv::imread(names[i]);
        if (picture.empty())
            throw std::runtime_error(std::string(names[i]) + ": cannot be read");
        features[i] = detect(engine.get(), picture);
    }
    const sp_descriptors a = view_of(features[0].descriptors), b = view_of(features[1].descriptors);
    sp_matches matches = {};
    check(sp_match(matcher.get(), &a, &b, &matches, &err), err);
    std::vector<cv::Point2f> from, to;
    for (size_t i = 0; i < matches.count; i++) {
        from.push_back(features[0].points[matches.pairs[2 * i]]);
        to.push_back(features[1].points[matches.pairs[2 * i + 1]]);
    }
    sp_matches_free(&matches);

    std::vector<uchar> inliers;
    const cv::Mat h = from.size() >= 4 ? cv::findHomography(from, to, cv::RANSAC, 3.0, inliers) : cv::Mat();
    if (h.empty()) {
        std::fprintf(stderr, "%zu matches and no homography\n", from.size());
        return 1;
    }
    std::printf("%zu matches, %d agree with\n", from.size(), cv::countNonZero(inliers));
    for (int row = 0; row < 3; row++)
        std::printf("%12.6f %12.6f %12.6f\n", h.at<double>(row, 0), h.at<double>(row, 1), h.at<double>(row, 2));
    return 0;
}

} // namespace

int main(int argc, char **argv) {
    if (argc != 4) {
        std::fprintf(stderr, "usage: homography WEIGHTS PICTURE PICTURE\n");
        return 2;
    }
    try {
        return run(argv[1], argv + 2);
    } catch (const std::exception &error) {
        std::fprintf(stderr, "%s\n", error.what());
        return 1;
    }
}
