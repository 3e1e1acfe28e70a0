package server

import (
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"html/template"

	"github.com/openpai/paictl/pkg/server/wire"
)

// SignInHead is the beginning of the HTML of sign-in pages.
const SignInHead = `<!doctype html><html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1"><title>Sign in</title></head><body>`

// Page responds with a page that may run only the given script. If status is 0, it sends the route's status.
func (c *Call) Page(status int, t *template.Template, script string, values map[string]any) error {
	var out bytes.Buffer
	if err := t.Execute(&out, values); err != nil {
		return err
	}
	allowed := "'none'"
	if script != "" {
		sum := sha256.Sum256([]byte(script))
		allowed = "'sha256-" + base64.StdEncoding.EncodeToString(sum[:]) + "'"
	}
	if status == 0 {
		status = c.Route.status()
	}
	h := c.Writer.Header()
	h.Set("Content-Security-Policy", "default-src 'none'; connect-src 'self'; form-action 'none'; base-uri 'none'; frame-ancestors 'none'; script-src "+allowed)
	h.Set("X-Frame-Options", "DENY")
	h.Set("Cache-Control", "no-store")
	wire.Bytes(c.Writer, c.Request, status, "text/html; charset=utf-8", out.Bytes())
	return nil
}
