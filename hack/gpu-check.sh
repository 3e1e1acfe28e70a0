#!/bin/sh
# Compares paictl's reading of the NVIDIA GPUs of this machine with nvidia-smi's, without Kubernetes: docs/hardware.md. It changes no
# setting of a GPU. It takes the arguments of gpu-check.
#
#   hack/gpu-check.sh --out report
#   GPU_CHECK=build hack/gpu-check.sh    only build; dist/gpu-check can be copied to a machine without Go, and its gpu-check run there
#
# A program that can't be built here is left out, and the report says what wasn't run.
set -eu
cd "$(dirname "$0")/.."

dir=$PWD/dist/gpu-check
mkdir -p "$dir"
flags='-trimpath -buildvcs=false'
export GOFLAGS=
CGO_ENABLED=0 go build $flags -ldflags='-s -w' -o "$dir/" ./hack/gpu-check ./cmd/pai-agent
CGO_ENABLED=1 go build $flags -ldflags='-s -w' -o "$dir/" ./cmd/pai-nvml
toolkit=github.com/NVIDIA/nvidia-container-toolkit/cmd
(cd bundle/nvidia-container-toolkit && CGO_ENABLED=1 CGO_CFLAGS=-w go build $flags -o "$dir/" "$toolkit/nvidia-ctk" "$toolkit/nvidia-cdi-hook") ||
	echo "NVIDIA's container toolkit wasn't built: the specification of containers won't be checked" >&2
cc=${CC:-gcc}
if command -v "$cc" >/dev/null; then
	"$cc" -O1 -Wall -o "$dir/cuda-check" hack/gpu-check/cuda/cuda.c -Wl,--no-as-needed -ldl -lm -lpthread
else
	echo "$cc isn't installed: no program with CUDA will run" >&2
fi
if [ "${GPU_CHECK:-}" = build ]; then
	exit 0
fi
exec "$dir/gpu-check" "$@"
