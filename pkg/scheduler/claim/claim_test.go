package claim

import (
	"testing"

	"github.com/stretchr/testify/assert"
)

func TestDeviceNames(t *testing.T) {
	t.Parallel()
	for _, index := range []int32{0, 7, 127, 1<<31 - 1} {
		got, ok := DeviceIndex(DeviceName(index))
		assert.True(t, ok)
		assert.Equal(t, index, got)
	}
	for _, name := range []string{"", "gpu-", "gpu--1", "gpu-07", "gpu-+7", "gpu-2147483648", "nic-3", "3"} {
		_, ok := DeviceIndex(name)
		assert.False(t, ok, name)
	}
}
