package report

import (
	"strconv"
	"strings"
)

// Encode returns the report in at most Max bytes. If necessary, it drops parts in this order: lines of the platform's log,
// lines of the user's log far from the match, the matched text.
func Encode(r Report) []byte {
	r = r.clean()
	for {
		if b := r.write(); len(b) <= Max {
			return b
		}
		if !r.shrink() {
			return Report{ExitCode: r.ExitCode, UserExitCode: r.UserExitCode}.write()
		}
	}
}

func (r Report) clean() Report {
	r.MatchedUserLog, r.MatchedPlatformLog = block(r.MatchedUserLog), block(r.MatchedPlatformLog)
	r.GPUFault = oneLine(r.GPUFault) // short enough to always be kept
	r.UserLog, r.PlatformLog = cleanLines(r.UserLog), cleanLines(r.PlatformLog)
	if r.userAt >= len(r.UserLog) {
		r.userAt = -1
	}
	if r.platformAt >= len(r.PlatformLog) {
		r.platformAt = -1
	}
	return r
}

func cleanLines(in []string) []string {
	out := make([]string, 0, len(in))
	for _, l := range in {
		out = append(out, oneLine(l))
	}
	return out
}

// oneLine cleans a text and shortens it to one line of at most maxLine bytes.
func oneLine(s string) string {
	return line(strings.ToValidUTF8(strings.ReplaceAll(s, "\n", " "), "?"))
}

// block cleans a text with several lines.
func block(s string) string {
	lines := strings.Split(strings.ToValidUTF8(clip(s, maxMatched), "?"), "\n")
	for i := range lines {
		lines[i] = line(lines[i])
	}
	return strings.TrimRight(strings.Join(lines, "\n"), " \n")
}

// shrink removes one part of the report. It returns false if no part can be removed.
func (r *Report) shrink() bool {
	switch {
	case len(r.PlatformLog) > 1 || len(r.PlatformLog) == 1 && r.platformAt < 0:
		r.PlatformLog, r.platformAt = dropFarthest(r.PlatformLog, r.platformAt)
	case len(r.UserLog) > 5:
		r.UserLog, r.userAt = dropFarthest(r.UserLog, r.userAt)
	case longest(r.UserLog) > 120:
		r.UserLog = shorten(r.UserLog)
	case len(r.UserLog) > 1 || len(r.UserLog) == 1 && r.userAt < 0:
		r.UserLog, r.userAt = dropFarthest(r.UserLog, r.userAt)
	case len(r.MatchedUserLog) > 64 || len(r.MatchedPlatformLog) > 64:
		r.MatchedUserLog, r.MatchedPlatformLog = halve(r.MatchedUserLog), halve(r.MatchedPlatformLog)
	default:
		return false
	}
	return true
}

// dropFarthest removes the first or last line, depending on its distance from the match. Without a match, it removes the first
// line.
func dropFarthest(lines []string, at int) ([]string, int) {
	if at >= 0 && len(lines)-1-at >= at {
		return lines[:len(lines)-1], at
	}
	return lines[1:], max(at-1, -1)
}

func longest(lines []string) int {
	n := 0
	for _, l := range lines {
		n = max(n, len(l))
	}
	return n
}

func shorten(lines []string) []string {
	limit := max(longest(lines)/2, 120)
	out := make([]string, len(lines))
	for i, l := range lines {
		out[i] = clip(l, limit)
	}
	return out
}

func halve(s string) string {
	if len(s) <= 64 {
		return s
	}
	return clip(s, max(len(s)/2, 64))
}

func (r Report) write() []byte {
	var b strings.Builder
	b.WriteString(Start + "\n")
	b.WriteString("exitCode: " + strconv.Itoa(r.ExitCode) + "\n")
	b.WriteString("originUserExitCode: " + strconv.Itoa(r.UserExitCode) + "\n")
	writeBlock(&b, "", "matchedUserLogString", r.MatchedUserLog)
	writeBlock(&b, "", "matchedPlatformLogString", r.MatchedPlatformLog)
	if r.GPUECC {
		b.WriteString("matchedGpuInfo:\n  nvidiaDoubleEccError: true\n")
	}
	if r.OOMKilled {
		b.WriteString("matchedOomKilled: true\n")
	}
	writeBlock(&b, "", "gpuFault", r.GPUFault)
	if len(r.UserLog)+len(r.PlatformLog) > 0 {
		b.WriteString("errorLogs:\n")
		writeBlock(&b, "  ", "user", strings.Join(r.UserLog, "\n"))
		writeBlock(&b, "  ", "platform", strings.Join(r.PlatformLog, "\n"))
	}
	b.WriteString("\n" + End + "\n")
	return []byte(b.String())
}

// writeBlock writes a text as a YAML literal block. The explicit indentation keeps spaces at the beginning of the first line.
func writeBlock(b *strings.Builder, indent, key, text string) {
	text = strings.TrimRight(text, "\n")
	if text == "" {
		return
	}
	b.WriteString(indent + key + ": |2-\n")
	for l := range strings.SplitSeq(text, "\n") {
		if l != "" {
			l = indent + "  " + l
		}
		b.WriteString(l + "\n")
	}
}
