package app

import (
	"context"
	"io"
	"net/http"
	"regexp"

	"github.com/openpai/paictl/pkg/people/rules"
	"github.com/openpai/paictl/pkg/server/wire"
)

// checksum matches a SHA-256 checksum in hexadecimal.
var checksum = regexp.MustCompile(`^[0-9a-f]{64}$`)

// errNoCode is the error for code that the caller hasn't uploaded. A caller gets this error even if another user has uploaded the same code.
var errNoCode = &wire.Error{Status: http.StatusNotFound, Code: "NoCodeError", Message: "the code isn't stored yet: send it first"}

// HasCode returns an error if the caller hasn't uploaded code with this checksum.
func (d *Actions) HasCode(ctx context.Context, sha256 string) error {
	if err := rules.Decide("code.head", &d.caller.Subject, rules.Object{Kind: rules.KindCode, Owner: d.caller.Name}); err != nil {
		return err
	}
	return d.sent(ctx, sha256)
}

func (d *Actions) sent(ctx context.Context, sha256 string) error {
	if !checksum.MatchString(sha256) {
		return wire.Bad("the checksum of code is a SHA-256, in 64 hexadecimal digits")
	}
	owns, err := d.app.Jobs.History.OwnsCode(ctx, d.caller.Name, sha256)
	if err == nil && !owns {
		return errNoCode
	}
	return err
}

// PutCode stores code that the caller uploads. size is in bytes. Even if another user has uploaded the same code, the caller must upload the whole
// code.
func (d *Actions) PutCode(ctx context.Context, sha256 string, size int64, body io.Reader) error {
	if err := rules.Decide("code.put", &d.caller.Subject, rules.Object{Kind: rules.KindCode, Owner: d.caller.Name}); err != nil {
		return err
	}
	switch {
	case !checksum.MatchString(sha256):
		return wire.Bad("the checksum of code is a SHA-256, in 64 hexadecimal digits")
	case size < 0:
		return &wire.Error{Status: http.StatusLengthRequired, Code: wire.CodeParameters, Message: "the length of the code is missing"}
	}
	return d.app.Jobs.History.PutCode(ctx, d.caller.Name, sha256, size, body)
}
