package ssh

import (
	"context"
	"errors"
	"io"
	"os"

	"github.com/pkg/sftp"
)

// Files provides access to a machine's files over SFTP, with the rights of the login user.
type Files struct {
	*sftp.Client
	host *host
	stop func()
}

// Files connects to a machine as Dial does, and opens an SFTP session. The gate treats it as a change of the host. The session ends with ctx; the
// caller must also close it.
func (c *Client) Files(ctx context.Context, t Target) (*Files, error) {
	if err := c.o.Gate.Check(t.String(), Script{Name: "files", Mutates: true}); err != nil {
		return nil, err
	}
	reached, err := c.Dial(ctx, t)
	if err != nil {
		return nil, err
	}
	h := reached.(*host)
	client, stop, err := h.sftp(ctx, "reach files", h.access(false))
	if err != nil {
		return nil, errors.Join(err, h.Close())
	}
	return &Files{Client: client, host: h, stop: stop}, nil
}

// Explain returns the error of an operation with the information whether the connection was lost or why ctx has ended. It returns nil for nil.
func (f *Files) Explain(ctx context.Context, what string, err error) error {
	switch {
	case err == nil:
		return nil
	case ctx.Err() != nil:
		return f.host.conn.explain(ctx, what, context.Cause(ctx))
	case cutOff(err) && !errors.Is(err, os.ErrNotExist):
		return f.host.conn.explain(ctx, what, io.EOF)
	}
	return err
}

// Close ends the session. The connection is closed when its last user releases it.
func (f *Files) Close() error {
	f.stop()
	return f.host.Close()
}
