# Pictures: decode, the image chain, encoding, the toy dataset. No ATen. FFmpeg and Arrow stay behind the headers.
troupe_library(workers_video
  SOURCES packet_table.cpp video_file.cpp decode_plan.cpp nal_units.cpp codec_cache.cpp clip_decoder.cpp yuv_to_rgb.cpp
          augmentation.cpp color_jitter.cpp resize.cpp canvas.cpp image_chain.cpp
          video_encoder.cpp raster.cpp toy_arm.cpp toy_scene.cpp toy_tables.cpp toy_dataset.cpp
  DEPENDS troupe::base
  PRIVATE PkgConfig::AVFORMAT PkgConfig::AVCODEC PkgConfig::AVUTIL Arrow::parquet nlohmann_json::nlohmann_json)
# Loops over pixels are worth nothing at -O1. No flag here changes a result: contraction stays off on every machine.
set_source_files_properties(yuv_to_rgb.cpp color_jitter.cpp resize.cpp image_chain.cpp raster.cpp
  PROPERTIES COMPILE_OPTIONS "-O3;-ffp-contract=off;-fno-math-errno;-fno-trapping-math")
