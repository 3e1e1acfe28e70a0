package redact

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/url"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func set(secrets ...string) *Set {
	var b Builder
	for _, s := range secrets {
		b.Add(Configuration, s)
	}
	return b.Set()
}

func TestAKnownSecretIsFoundInEveryEncoding(t *testing.T) {
	const s = `p4/ss"w+rd<'&é 7!`
	known := set(s)
	j, err := json.Marshal(s)
	require.NoError(t, err)
	jj, err := json.Marshal(string(j))
	require.NoError(t, err)
	text := map[string]string{
		"plain": "x" + s + "y", "json": string(j), "json in json": string(jj), "query": "?p=" + url.QueryEscape(s), "path": url.PathEscape(s),
		"small escapes": strings.ToLower(url.QueryEscape(s)), "yaml": "'" + strings.ReplaceAll(s, "'", "''") + "'",
		"shell": "'" + strings.ReplaceAll(s, "'", `'\''`) + "'", "userinfo": "http://" + url.UserPassword("ann", s).String() + "@h",
		"hex": fmt.Sprintf("%x", s), "HEX": fmt.Sprintf("%X", s),
	}
	for before := range 3 {
		for after := range 3 {
			in := []byte(strings.Repeat("b", before) + s + strings.Repeat("a", after))
			text[fmt.Sprintf("base64 %d %d", before, after)] = base64.StdEncoding.EncodeToString(in)
			text[fmt.Sprintf("base64url %d %d", before, after)] = base64.RawURLEncoding.EncodeToString(in)
		}
	}
	for name, in := range text {
		out := known.String(in)
		assert.Contains(t, out, "[redacted:configuration]", "%s: %s", name, in)
		assert.Less(t, len(out), len("[redacted:configuration]")+14, "%s: %s", name, out)
		assert.Equal(t, "nothing here", known.String("nothing here"))
	}
}

// The base64 characters next to a secret contain some bits of the secret.
func TestWhatIsLeftOfBase64AroundASecretTellsNothingOfIt(t *testing.T) {
	for before := range 3 {
		for after := range 3 {
			left := map[string]bool{}
			for _, s := range []string{"correct-horse-1", "correct-horse-y", "Correct-horse-1", "\x7forrect-horse-~"} {
				in := base64.StdEncoding.EncodeToString([]byte(strings.Repeat("b", before) + s + strings.Repeat("a", after)))
				left[set(s).String("note "+in)] = true
			}
			assert.Len(t, left, 1, "%d before, %d after", before, after)
		}
	}
}

func TestAMultiLineSecretIsFoundLineByLine(t *testing.T) {
	key := "-----BEGIN OPENSSH KEY-----\n" + strings.Repeat("QWxhZGRpbjpvcGVuIHNlc2FtZQ0123456789abcdefghijklm\n", 3) + "c2Vjb25kTGluZU9mVGhlS2V5\n"
	known := set(key)
	out := known.String("Jan 1 host x: c2Vjb25kTGluZU9mVGhlS2V5 after")
	assert.Equal(t, "Jan 1 host x: [redacted:configuration] after", out)
	var wrapped strings.Builder
	for rest := base64.StdEncoding.EncodeToString([]byte(key)); rest != ""; {
		n := min(76, len(rest))
		wrapped.WriteString(rest[:n] + "\n")
		rest = rest[n:]
	}
	out = known.String(wrapped.String())
	assert.Empty(t, strings.ReplaceAll(strings.ReplaceAll(out, "[redacted:configuration]", ""), "\n", ""))
}

func TestALongSecretIsFoundWhole(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	b := make([]byte, 5000)
	for i := range b {
		b[i] = 'a' + byte(r.IntN(26))
	}
	assert.Equal(t, "a [redacted:configuration] z", set(string(b)).String("a "+string(b)+" z"))
}

func TestASecretAcrossTwoWritesIsFound(t *testing.T) {
	const s = "correct-horse-7"
	known := set(s)
	text := strings.Repeat("x", 100) + s + "y"
	for i := range text {
		var b bytes.Buffer
		w := known.Writer(&b)
		for _, part := range []string{text[:i], text[i:]} {
			_, err := w.Write([]byte(part))
			require.NoError(t, err)
		}
		require.NoError(t, w.Close())
		require.Equal(t, strings.Repeat("x", 100)+"[redacted:configuration]y", b.String())
	}
}

// TestSecretsAcrossWindowsAreFound moves secrets of all kinds over the positions at which the stream is split.
func TestSecretsAcrossWindowsAreFound(t *testing.T) {
	known := set("correct-horse-7")
	key := "-----BEGIN RSA PRIVATE KEY-----\n" + strings.Repeat("MIIEowIBAAKCAQEAsecretBODY\n", 30) + "-----END RSA PRIVATE KEY-----"
	for name, secret := range map[string]string{
		"known": "correct-horse-7", "pem": key, "value": `"db_password": "w0nderland"`, "url": "https://ann:w0nderland@example.com/",
		"header": "Authorization: Basic dzBuZGVybGFuZA==", "yaml": "\npassphrase: my w0nderland is here\n",
	} {
		for _, at := range []int{window - ahead, window, 2*window - 2*ahead} {
			for shift := -len(secret) - 3; shift <= 3; shift += max(len(secret)/40, 1) {
				text := strings.Repeat("log line 12\n", at/12+1)[:at+shift] + " " + secret + "\n" + strings.Repeat("tail\n", 30000)
				out := known.String(text)
				for _, leak := range []string{"correct-horse-7", "secretBODY", "w0nderland", "dzBuZGVybGFuZA"} {
					require.NotContains(t, out, leak, "%s at %d%+d", name, at, shift)
				}
				require.True(t, strings.HasSuffix(out, "tail\n"))
			}
		}
	}
}

func TestShapesOfSecretsAreFound(t *testing.T) {
	jwt := "eyJhbGciOiJSUzI1NiJ9.eyJzdWIiOiIxMjM0NTY3ODkwIn0.c2lnbmF0dXJl"
	none := set()
	for in, want := range map[string]string{
		"password=w0nder next":                                                     "password=[redacted:password] next",
		"DB_PASSWORD: my long phrase":                                              "DB_PASSWORD: [redacted:password]",
		`{"apiKey":"a,b c","x":1}`:                                                 `{"apiKey":"[redacted:password]","x":1}`,
		`err="bad {\"token\":\"abc\",\"y\":2}"`:                                    `err="bad {\"token\":\"[redacted:password]\",\"y\":2}"`,
		`"a": "password: \"w0n\" said"`:                                            `"a": "password: \"[redacted:password]\" said"`,
		"--api-key w0nder --x":                                                     "--api-key [redacted:password] --x",
		"run --token=w0nder;":                                                      "run --token=[redacted:password];",
		"password2 := 'it is'":                                                     "password2 := '[redacted:password]'",
		"client-key-data: TUlJRQ==":                                                "client-key-data: [redacted:password]",
		"password: |\n  line one\n  two\nnext: 1":                                  "password: |\n[redacted:password]\nnext: 1",
		"Authorization: Bearer abc":                                                "Authorization: [redacted:authorization]",
		`-H "authorization: Basic dTpw" x`:                                         `-H "authorization: [redacted:authorization]" x`,
		"map[Authorization:[Bearer abc]]":                                          "map[Authorization:[[redacted:authorization]]]",
		"sent bearer abcdefgh12345678 now":                                         "sent bearer [redacted:authorization] now",
		"postgres://ann:p:w@db/x":                                                  "postgres://ann:[redacted:url-password]@db/x",
		"https://ann@example.com/":                                                 "https://ann@example.com/",
		"got " + jwt + " ok":                                                       "got [redacted:jwt] ok",
		"AKIAIOSFODNN7EXAMPLE!":                                                    "[redacted:token]!",
		"x ghp_" + strings.Repeat("a1", 18):                                        "x [redacted:token]",
		"hf_" + strings.Repeat("Ab", 17):                                           "[redacted:token]",
		"-----BEGIN PRIVATE KEY-----\nMIIE\nAAAA\n":                                "[redacted:private-key]",
		"AAAA\nBBBB\n-----END RSA PRIVATE KEY-----\nrest":                          "[redacted:private-key]\nrest",
		"k: LS0tLS1CRUdJTiBQUklWQVRFIEtFWS0tLS0tCk1JSUU= x":                        "k: [redacted:private-key] x",
		`"-----BEGIN EC PRIVATE KEY-----\nMI==\n-----END EC PRIVATE KEY-----\n" x`: `"[redacted:private-key]\n" x`,
		// These texts aren't secrets.
		"secretName: pai-credentials": "secretName: pai-credentials", `"automountServiceAccountToken": false,`: `"automountServiceAccountToken": false,`,
		"#  ## Secret: kept apart": "#  ## Secret: kept apart", `"token": 3, "authorization": 12`: `"token": 3, "authorization": 12`, "password: ********": "password: ********", `"secret": {"secretName": "x"}`: `"secret": {"secretName": "x"}`, "secret: null": "secret: null",
		"MountVolume failed: secret \"foo\" not found": "MountVolume failed: secret \"foo\" not found", "basic authentication": "basic authentication",
		"couldn't find key password in Secret a/b": "couldn't find key password in Secret a/b", "-----BEGIN CERTIFICATE-----\nMI\n": "-----BEGIN CERTIFICATE-----\nMI\n",
	} {
		assert.Equal(t, want, none.String(in), in)
	}
}

func TestWhatIsTooShortOrAMarkIsNotLookedFor(t *testing.T) {
	var b Builder
	for value, want := range map[string]bool{"abc": false, "token": false, "redacted": false, "abcd": true, "ab\ncd": false} {
		assert.Equal(t, want, b.Add(Secret, value), value)
	}
}

func TestWhatWasReplacedIsCounted(t *testing.T) {
	var b bytes.Buffer
	w := set("w0nderland").Writer(&b)
	_, err := w.Write([]byte("w0nderland w0nderland https://a:b@c/"))
	require.NoError(t, err)
	require.NoError(t, w.Close())
	assert.Equal(t, map[string]int{Configuration: 2, URLPassword: 1}, w.Counts())
	w = set().Writer(iotest.TruncateWriter(&b, 0))
	_ = w.Close()
	failing := set().Writer(fails{})
	_, _ = failing.Write([]byte("x"))
	assert.EqualError(t, failing.Close(), "full")
}

type fails struct{}

func (fails) Write([]byte) (int, error) { return 0, fmt.Errorf("full") }

func TestMemoryDoesNotGrowWithTheStream(t *testing.T) {
	w := set("w0nderland").Writer(discard{})
	block := bytes.Repeat([]byte("a line of a log without anything in it\n"), 1000)
	block = append(block, bytes.Repeat([]byte("a"), 200<<10)...) // and a line that is longer than the window
	for range 100 {
		_, err := w.Write(block)
		require.NoError(t, err)
		require.LessOrEqual(t, cap(w.buf), 2*window)
	}
	require.NoError(t, w.Close())
}

type discard struct{}

func (discard) Write(p []byte) (int, error) { return len(p), nil }

func FuzzKnownSecretsNeverPass(f *testing.F) {
	f.Add("correct-horse-7", "second-one", "a correct-horse-7second-one password=x", 5)
	f.Add("abcdef", "defghi", "abcdefghi -----BEGIN RSA PRIVATE KEY----- x", 3)
	f.Add("pass[red", "n]tail", "pass[redn]tail", 1)
	f.Add("line one\nline two", "eyJhbGciOiJ9", "line two eyJhbGciOiJ9.eyJhbGciOiJ9.x \\\"token\\\":\\\"", 2)
	f.Fuzz(func(t *testing.T, a, b, text string, at int) {
		var builder Builder
		var secrets []string
		for _, s := range []string{a, b} {
			if s = strings.TrimSpace(s); builder.Add(Configuration, s) && !strings.Contains(s, "\n") && !strings.ContainsAny(s, "[]") {
				secrets = append(secrets, s)
			}
		}
		known := builder.Set()
		at = max(0, min(at, len(text)))
		text = text[:at] + a + text[at:] + b
		var out bytes.Buffer
		w := known.Writer(&out)
		for _, part := range []string{text[:at], text[at:]} {
			if _, err := w.Write([]byte(part)); err != nil {
				t.Fatal(err)
			}
		}
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
		for _, s := range secrets {
			if strings.Contains(out.String(), s) && !strings.Contains(text, markStart) {
				t.Fatalf("%q in %q, of %q", s, out.String(), text)
			}
			for before := range 3 {
				in := base64.StdEncoding.EncodeToString([]byte(strings.Repeat("x", before) + s))
				if len(s) >= 8 && known.String(in) == in {
					t.Fatalf("%q is not found in %q", s, in)
				}
			}
		}
	})
}
