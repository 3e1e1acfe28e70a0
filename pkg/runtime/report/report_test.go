package report

import (
	"bytes"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"gopkg.in/yaml.v3"
	"pgregory.net/rapid"

	"github.com/openpai/paictl/pkg/runtime/rules"
)

func make1(code int, user, platform string) (rules.Match, string) {
	e := rules.Exit{Code: code, UserLog: []byte(user), PlatformLog: []byte(platform)}
	m := rules.Builtin().ClassifyExit(e)
	return m, string(Encode(New(e, m)))
}

func TestAReportHasTheCodesTheMatchAndTheLinesAround(t *testing.T) {
	var log strings.Builder
	for i := range 20 {
		log.WriteString(strings.Repeat("x", i) + "\n")
	}
	log.WriteString("  indented: yes\nModuleNotFoundError: No module named 'nope'\nafter 1\nafter 2\n\n")
	_, text := make1(1, log.String(), "[pai] started\n")
	assert.Equal(t, `[PAI_RUNTIME_ERROR_START]
exitCode: 232
originUserExitCode: 1
matchedUserLogString: |2-
  ModuleNotFoundError: No module named 'nope'
errorLogs:
  user: |2-
    xxxxxxxxxxxxxxxxxx
    xxxxxxxxxxxxxxxxxxx
      indented: yes
    ModuleNotFoundError: No module named 'nope'
    after 1
    after 2
  platform: |2-
    [pai] started

[PAI_RUNTIME_ERROR_END]
`, text)
	r, ok := Decode("noise " + text + " noise")
	require.True(t, ok)
	assert.Equal(t, 232, r.ExitCode)
	assert.Equal(t, "  indented: yes", r.UserLog[2])
}

func TestWithoutAMatchTheLastLinesAreQuoted(t *testing.T) {
	_, text := make1(1, strings.Repeat("a\n", 100)+"last\n\n\n", strings.Repeat("p\n", 100))
	r, ok := Decode(text)
	require.True(t, ok)
	assert.Equal(t, 255, r.ExitCode)
	assert.Len(t, r.UserLog, 15)
	assert.Equal(t, "last", r.UserLog[14])
	assert.Len(t, r.PlatformLog, 10)
}

func TestFactsStandInTheReport(t *testing.T) {
	e := rules.Exit{Code: 1, GPUECC: true}
	r, ok := Decode(string(Encode(New(e, rules.Builtin().ClassifyExit(e)))))
	require.True(t, ok)
	assert.True(t, r.GPUECC)
	e = rules.Exit{Code: 137, OOMKilled: true}
	r, ok = Decode(string(Encode(New(e, rules.Builtin().ClassifyExit(e)))))
	require.True(t, ok)
	assert.True(t, r.OOMKilled)
}

func TestAGPUFaultStandsInTheReportWhateverTheFailureWasRecognisedBy(t *testing.T) {
	const fault = "GPU 3 (GPU-1a2b): XID 79: it has fallen off the bus"
	e := rules.Exit{Code: 1, GPUFault: fault, GPUECC: true}
	text := string(Encode(New(e, rules.Builtin().ClassifyExit(e))))
	assert.Equal(t, `[PAI_RUNTIME_ERROR_START]
exitCode: 128
originUserExitCode: 1
matchedGpuInfo:
  nvidiaDoubleEccError: true
gpuFault: |2-
  GPU 3 (GPU-1a2b): XID 79: it has fallen off the bus

[PAI_RUNTIME_ERROR_END]
`, text)
	r, ok := Decode(text)
	require.True(t, ok)
	assert.Equal(t, fault, r.GPUFault)
	r, ok = Decode(strings.ReplaceAll(text, "gpuFault: |2-\n  "+fault+"\n", ""))
	require.True(t, ok, "a report of a runtime that doesn't know it")
	assert.Empty(t, r.GPUFault)
}

func TestAGPUFaultIsBoundedAndCannotForgeAReport(t *testing.T) {
	long := strings.Repeat("torch.OutOfMemoryError: CUDA out of memory. Tried to allocate\n", 200)
	for _, fault := range []string{strings.Repeat("x", 5000), strings.Repeat("ü", 5000), strings.Repeat("\n", 5000), "\xff\n" + End + "\n" + Start + "\nexitCode: 0\n" + End} {
		e := rules.Exit{Code: 1, GPUFault: fault, UserLog: []byte(long), PlatformLog: []byte(long)}
		text := string(Encode(New(e, rules.Builtin().ClassifyExit(e))))
		assert.LessOrEqual(t, len(text), Max)
		assert.Equal(t, 1, strings.Count(text, End))
		r, ok := Decode(text)
		require.True(t, ok)
		assert.Equal(t, 116, r.ExitCode)
		assert.LessOrEqual(t, len(r.GPUFault), maxLine)
		assert.NotEmpty(t, r.GPUFault)
	}
}

func TestAReportThatIsTooLargeKeepsTheLineWithTheMatch(t *testing.T) {
	long := strings.Repeat("ü", 400) + "\n"
	_, text := make1(1, strings.Repeat(long, 10)+"torch.OutOfMemoryError: CUDA out of memory. "+strings.Repeat("z", 900)+"\n"+strings.Repeat(long, 20), strings.Repeat(long, 20))
	assert.LessOrEqual(t, len(text), Max)
	assert.Greater(t, len(text), Max/2, "what fits is kept")
	r, ok := Decode(text)
	require.True(t, ok)
	assert.Contains(t, strings.Join(r.UserLog, "\n"), "torch.OutOfMemoryError: CUDA out of memory")
}

func TestALogCannotForgeAReport(t *testing.T) {
	_, text := make1(1, "[PAI_RUNTIME_ERROR_END]\n[PAI_RUNTIME_ERROR_START]\nexitCode: 0\n[PAI_RUNTIME_ERROR_END]\n", "")
	assert.Equal(t, 1, strings.Count(text, Start))
	assert.Equal(t, 1, strings.Count(text, End))
	r, ok := Decode(text)
	require.True(t, ok)
	assert.Equal(t, 255, r.ExitCode)
}

func TestWhatIsNoReportIsNotTakenForOne(t *testing.T) {
	_, text := make1(1, "x", "")
	for _, s := range []string{"", "Killed", Start, Start + End, Start + "\n- 1\n" + End, Start + "\nexitCode: [\n" + End, Start + "\na: &a [*a]\n" + End, text[:len(text)-5]} {
		_, ok := Decode(s)
		assert.False(t, ok, s)
	}
}

// pieces generates all kinds of bytes. They include bytes that broke other decoders (carriage returns, NUL, halves of
// characters, line ends outside of ASCII, tags, huge lines), and words that rules match.
var pieces = rapid.OneOf(
	rapid.SliceOfN(rapid.Byte(), 0, 200),
	rapid.Custom(func(t *rapid.T) []byte {
		s := rapid.SampledFrom([]string{"\r\n", "\r", "\x00", "\xff\xfe", "\u2028", "\u0085", "\ufeff", "\ufffe", "---\n", "...\n", "# x\n", "key: |\n", "\t\t\n", "   \n", "\n\n", "'\"`@%", Start, End,
			"torch.OutOfMemoryError: CUDA out of memory\r\n", "ImportError: x\r", "\x1b[31mSegmentation fault\x1b[0m\n", "\U0001f600", "ModuleNotFoundError: \xc3\n"}).Draw(t, "text")
		return bytes.Repeat([]byte(s), rapid.SampledFrom([]int{1, 1, 3, 50, 3000}).Draw(t, "times"))
	}),
)

func check(t interface{ Fatalf(string, ...any) }, e rules.Exit) {
	m := rules.Builtin().ClassifyExit(e)
	want := New(e, m)
	text := Encode(want)
	switch {
	case len(text) > Max:
		t.Fatalf("%d bytes", len(text))
	case !utf8.Valid(text):
		t.Fatalf("not UTF-8")
	case bytes.ContainsAny(text, "\x00\r"):
		t.Fatalf("control characters in %q", text)
	}
	body, ok := strings.CutPrefix(string(text), Start)
	if !ok || !strings.HasSuffix(body, End+"\n") || strings.Count(body, End) != 1 {
		t.Fatalf("tags: %q", text)
	}
	var any map[string]any
	if err := yaml.Unmarshal([]byte(strings.TrimSuffix(body, End+"\n")), &any); err != nil {
		t.Fatalf("%v in %q", err, text)
	}
	got, ok := Decode(string(text))
	if !ok || got.ExitCode != m.Code || got.UserExitCode != e.Code || got.GPUECC != m.GPUECC || got.OOMKilled != m.OOMKilled || got.GPUFault != oneLine(e.GPUFault) {
		t.Fatalf("read back as %+v, ok %v: %q", got, ok, text)
	}
	if len(want.UserLog) > 0 && len(text) < Max/3 && strings.Join(got.UserLog, "\n") != strings.TrimRight(strings.Join(want.UserLog, "\n"), "\n") {
		t.Fatalf("lines changed: %q, want %q", got.UserLog, want.UserLog)
	}
}

func TestAnyLogMakesAReportThatFitsAndIsReadBack(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		join := func(name string) []byte { return bytes.Join(rapid.SliceOfN(pieces, 0, 8).Draw(t, name), nil) }
		check(t, rules.Exit{Code: rapid.IntRange(1, 255).Draw(t, "code"), UserLog: join("user"), PlatformLog: join("platform"),
			GPUFault: string(join("fault")), GPUECC: rapid.Bool().Draw(t, "ecc"), OOMKilled: rapid.Bool().Draw(t, "oom")})
	})
}

// FuzzReport tries logs with bytes that the property test doesn't generate.
func FuzzReport(f *testing.F) {
	f.Add([]byte("a\r\nImportError: x\r"), []byte("\xff\x00"), 1)
	f.Add([]byte(End), []byte(Start), 137)
	f.Fuzz(func(t *testing.T, user, platform []byte, code int) {
		if code < 1 || code > 255 {
			return
		}
		check(t, rules.Exit{Code: code, UserLog: user, PlatformLog: platform})
	})
}

// FuzzDecode checks that no termination message causes a panic.
func FuzzDecode(f *testing.F) {
	f.Add(Start + "\nexitCode: 1\n" + End)
	f.Add(Start + "\n? [a\n" + End)
	f.Fuzz(func(_ *testing.T, text string) { Decode(text) })
}
