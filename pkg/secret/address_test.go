package secret

import "testing"

func TestAddressesAreShownWithoutLoginQueryAndFragment(t *testing.T) {
	for text, want := range map[string]string{
		"":                               "",
		"https://h.example:5000/x":       "https://h.example:5000/x",
		"https://[fd00::1]:443/a@b":      "https://[fd00::1]:443/a@b",
		"registry.example.org/x@sha256:": "registry.example.org/x@sha256:",
		"ubuntu@sha256:0123":             "ubuntu@sha256:0123",
		"not an address":                 "not an address",
		"https://u:sekrit@h/x":           "https://********@h/x",
		"git::https://u:sekrit@h//x":     "git::https://********@h//x",
		"u:sekrit@h/x":                   "********@h/x",
		"https://u:se/kr?it@h/x":         "https://********@h/x",
		"https://u:se@krit@h/x":          "https://********@h/x",
		"https://sekrit@h":               "https://********@h",
		"https://h/?token=sekrit":        "https://h/?********",
		"https://h#access_token=sekrit":  "https://h#********",
		"https://u:p@h/x?t=sekrit#a":     "https://********@h/x?********",
		"https://h/?mail=ann@b":          "https://h/?********",
		"https://h/x?":                   "https://h/x?",
	} {
		if got := Address(text); got != want {
			t.Errorf("Address(%q) = %q, want %q", text, got, want)
		}
	}
	for text, want := range map[string]bool{"https://u:p@h": true, "https://u@h": true, "https://:@h": false, "https://h/a@b": false} {
		if got := HasLogin(text); got != want {
			t.Errorf("HasLogin(%q) = %v, want %v", text, got, want)
		}
	}
}
