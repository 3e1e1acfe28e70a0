package server

import (
	"iter"
	"net/http"
	"reflect"

	"github.com/openpai/paictl/pkg/server/wire"
)

// rowBytes is the assumed memory of one row of a list.
const rowBytes = 1 << 10

// Listing returns a route whose handler responds with Call.List. The OpenAPI document describes the response as Out. Each person can read one such
// list at a time.
func Listing[In, Out any](path, rule, summary string, h func(*Call, *In) error, o ...Option) Route {
	r := Route{Method: http.MethodGet, Path: path, Rule: rule, Summary: summary, In: reflect.TypeFor[In](), Out: reflect.TypeFor[Out](), Limit: Limit{Each: 1}}
	r.Serve = func(c *Call) error {
		in := new(In)
		if err := c.Decode(in); err != nil {
			return err
		}
		return h(c, in)
	}
	for _, change := range o {
		change(&r)
	}
	return r
}

// List responds with before, then the values one after the other, then after. bytes is the approximate memory of the values. Lists wait for each
// other if they would take too much memory together.
func (c *Call) List(before, after string, bytes int, values iter.Seq[any]) error {
	if err := c.Rows(bytes/rowBytes + 1); err != nil {
		return err
	}
	body, err := wire.PackList(before, after, values)
	if err != nil {
		return err
	}
	return c.packed(body)
}

// packed responds with a packed list in JSON.
func (c *Call) packed(body *wire.Packed) error {
	c.read()
	give, err := c.waits(body)
	if err != nil {
		return err
	}
	defer give()
	body.JSON(c.Writer, c.Request, c.Route.status())
	return nil
}
