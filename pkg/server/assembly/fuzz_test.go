package assembly_test

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"net/url"
	"reflect"
	"strings"
	"testing"

	"github.com/openpai/paictl/pkg/server/wire"
)

// For any request to any route, the server decodes the request or responds that the request is malformed. The response never contains a value from
// the request.
func FuzzRequests(f *testing.F) {
	for _, body := range []string{`{}`, `null`, `{"username":"x","password":"y"}`, `{"text":1}`, `{"spec":{"groups":[null]}}`, `{"was":null,"spec":{"extension":[]}}`, `value=STOP`, `{"seconds":1e99}`, `{"tasks":-1}`, "\x00", `{"scopes":{"a":1}}`, `{"admin":"yes"}`, `"text"`} {
		f.Add("limit=1&offset=x&order=a,b&vc&since=yesterday", "part", body)
		f.Add("tail=-1&task=99999999999&follow=maybe", "\xff", body)
	}
	all := routes(f)
	f.Fuzz(func(t *testing.T, query, part, body string) {
		for i := range all {
			if all[i].In == nil {
				continue
			}
			r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/", strings.NewReader(body+"hunter-7391"))
			r.URL = &url.URL{Path: "/", RawQuery: query}
			r.Header.Set("User-Agent", part)
			for _, name := range []string{"user", "name", "job", "group", "token", "role", "index", "attempt", "sha256", "path", "vc"} {
				r.SetPathValue(name, part)
			}
			err := wire.Decode(r, reflect.New(all[i].In).Interface())
			if err == nil {
				continue
			}
			said, ok := errors.AsType[*wire.Error](err)
			if !ok || said.Status != http.StatusBadRequest && said.Status != http.StatusRequestEntityTooLarge {
				t.Fatalf("%s %s: %v", all[i].Method, all[i].Path, err)
			}
			if strings.Contains(said.Message+said.Remedy, "hunter-7391") && !strings.Contains(query+part+body, "7391") {
				t.Fatalf("%s %s repeats what was sent: %v", all[i].Method, all[i].Path, err)
			}
		}
	})
}
