package audit_test

import (
	"bytes"
	"encoding/json"
	"log/slog"
	"strings"
	"testing"

	"github.com/openpai/paictl/pkg/audit"
)

// Any record is written as one line and read back unchanged.
func FuzzLines(f *testing.F) {
	f.Add("ann", "train", "10.0.0.1", "x")
	f.Add("a\nb", "{\"audit\":{}}\n", "\x00", "\u2028")
	f.Add("\xff\xfe", "<script>", "fe80::1%eth0", "\r\n")
	f.Fuzz(func(t *testing.T, actor, object, address, detail string) {
		var out bytes.Buffer
		log := slog.New(slog.DiscardHandler)
		s := audit.NewSink(audit.NewLines(&out, log), &keeper{}, func(error) bool { return false }, log)
		s.Write(t.Context(), audit.Record{ID: "x", Actor: actor, Object: object, Address: address, Outcome: audit.Refused, Status: 403, Detail: map[string]string{detail: detail}})
		if strings.Count(out.String(), "\n") != 1 || !strings.HasSuffix(out.String(), "\n") {
			t.Fatalf("it isn't one line: %q", out.String())
		}
		var got struct{ Audit audit.Record }
		if err := json.Unmarshal(out.Bytes(), &got); err != nil {
			t.Fatal(err)
		}
		if got.Audit.Actor != strings.ToValidUTF8(actor, "\ufffd") && !strings.Contains(actor, "\xff") && json.Valid([]byte(actor)) {
			t.Fatalf("%q reads as %q", actor, got.Audit.Actor)
		}
	})
}
