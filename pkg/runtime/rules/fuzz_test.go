package rules

import (
	"testing"
	"unicode/utf8"
)

// FuzzParse checks that Parse never panics, and that accepted rules work.
func FuzzParse(f *testing.F) {
	f.Add(builtinText)
	f.Add([]byte("- {code: 221, phrase: A, pattern: {runtimeContainerPatterns: [{userLogRegex: 'x(', exitCode: 1}]}}"))
	f.Add([]byte("spec: [{code: 1}]"))
	f.Add([]byte("- &a {code: 221, phrase: A}\n- *a\n"))
	f.Fuzz(func(t *testing.T, data []byte) {
		s, findings := Parse("f", data)
		if (s == nil) != (findings.Err() != nil) {
			t.Fatalf("set %v, findings %v", s, findings)
		}
		if s == nil {
			return
		}
		if m := s.ClassifyExit(Exit{Code: 1, UserLog: data, PlatformLog: data}); m.Rule.Phrase == "" {
			t.Fatal("a match without a phrase")
		}
		s.ClassifyPod(Pod{Reason: "x", Message: string(data), Containers: []Container{{Code: 2, Reason: "OOMKilled"}}})
	})
}

// FuzzClassify checks that no log causes a panic, and that positions are inside the cleaned log.
func FuzzClassify(f *testing.F) {
	f.Add(1, []byte("CUDA error: out of memory\r\n\xff\x00"), []byte("NVRM: Xid (PCI:1): 79"), "", false, false)
	f.Add(137, []byte("\x1b[1mKilled\r"), []byte(""), "GPU 3: XID 79", true, true)
	f.Fuzz(func(t *testing.T, code int, user, platform []byte, fault string, ecc, oom bool) {
		m := Builtin().ClassifyExit(Exit{Code: code, UserLog: user, PlatformLog: platform, GPUECC: ecc, GPUFault: fault, OOMKilled: oom})
		if m.Rule.Phrase == "" || m.Code < 0 || m.Code > 255 {
			t.Fatalf("%+v", m)
		}
		clean := Clean(user)
		if !utf8.ValidString(clean) || !utf8.ValidString(m.UserLog) {
			t.Fatal("not UTF-8")
		}
		if m.UserLogAt > len(clean) || m.UserLogAt >= 0 && clean[m.UserLogAt:m.UserLogAt+len(m.UserLog)] != m.UserLog {
			t.Fatalf("%q is not at %d", m.UserLog, m.UserLogAt)
		}
	})
}
