package ssh

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"syscall"
	"testing"

	"github.com/pkg/sftp"
	"github.com/stretchr/testify/assert"
)

func TestALostConnectionIsKnownByWhoeverNoticesFirst(t *testing.T) {
	for name, test := range map[string]struct {
		err  error
		want bool
	}{
		"sftp":         {fmt.Errorf("open: %w", sftp.ErrSSHFxConnectionLost), true},
		"the stream":   {io.EOF, true},
		"the socket":   {fmt.Errorf("open: failed to send packet: %w", &net.OpError{Op: "write", Err: syscall.EPIPE}), true},
		"a full disk":  {errors.New("sftp: failure"), false},
		"a local file": {&fs.PathError{Op: "read", Path: "a", Err: syscall.EIO}, false},
	} {
		t.Run(name, func(t *testing.T) { assert.Equal(t, test.want, cutOff(test.err)) })
	}
}
