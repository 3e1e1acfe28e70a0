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

// Files connects to a machine like Dial, and opens an SFTP session. The gate checks the session as a change of the host. The session ends when ctx
// ends. The caller must close the session.
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

// Explain adds the reason to the error of an operation: the connection was lost, or ctx has ended. Explain returns nil if err is nil.
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

// Close ends the session and releases the connection. The connection is closed when the last user releases it.
func (f *Files) Close() error {
	f.stop()
	return f.host.Close()
}
