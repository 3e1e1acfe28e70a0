package backup

import (
	"context"
	"io"
)

// until is a reader that fails when a context has ended.
func until(ctx context.Context, r io.Reader) io.Reader { return &untilReader{ctx, r} }

type untilReader struct {
	ctx context.Context //nolint:containedctx // a reader has no parameter for it
	r   io.Reader
}

// Read implements io.Reader.
func (u *untilReader) Read(b []byte) (int, error) {
	if err := u.ctx.Err(); err != nil {
		return 0, context.Cause(u.ctx)
	}
	return u.r.Read(b)
}
