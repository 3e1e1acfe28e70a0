package rules

import (
	"strings"
	"unicode"
)

// phrases maps phrases of rules and reasons of Kubernetes to readable texts. It contains phrases that splitting into words
// doesn't make clear.
var phrases = map[string]string{
	"StopFrameworkRequested":       "stopped",
	"DeleteTaskRequested":          "scaled down",
	"RestartRequested":             "restarted",
	"FrameworkAttemptCompletion":   "ended with its attempt",
	"ConfigMapExternalDeleted":     "its ConfigMap was deleted",
	"PodExternalDeleted":           "its pod was deleted",
	"PodLocalCacheCreationTimeout": "its pod was never seen",
	"DependencyFailed":             "a job before it failed",
	"FrameworkGone":                "its Framework was removed",
	"ErrImagePull":                 "image can't be pulled",
	"ImagePullBackOff":             "image can't be pulled",
	"ErrImageNeverPull":            "image is not on the machine",
	"CreateContainerConfigError":   "container can't be configured",
	"CreateContainerError":         "container can't be created",
	"RunContainerError":            "container can't be started",
	"FailedScheduling":             "not scheduled",
	"Unschedulable":                "no node fits",
	"FailedCreatePodSandBox":       "pod sandbox can't be created",
	"BackOff":                      "waits before a retry",
	"CrashLoopBackOff":             "keeps crashing",
}

// spelled maps lower-case words to their usual spelling, such as names.
var spelled = map[string]string{
	"cuda": "CUDA", "dnn": "DNN", "ecc": "ECC", "gpu": "GPU", "nccl": "NCCL", "xid": "XID", "tensorflow": "TensorFlow",
	"docker": "Docker", "windows": "Windows",
}

// Words splits a phrase of a rule or a reason of Kubernetes into words. For example, it converts ContainerMemoryOOMKilled to
// "container memory OOM killed".
func Words(phrase string) string {
	if w, ok := phrases[phrase]; ok {
		return w
	}
	var out []string
	for _, field := range strings.Fields(phrase) {
		words := split(field)
		if len(words) == 1 && !unicode.IsUpper([]rune(field)[0]) {
			out = append(out, field) // already a word
			continue
		}
		for i := 0; i < len(words); i++ {
			if words[i] == "Sig" && i+1 < len(words) { // SigKill is SIGKILL
				i++
				out = append(out, "SIG"+strings.ToUpper(words[i]))
				continue
			}
			out = append(out, word(words[i]))
		}
	}
	return strings.Join(out, " ")
}

// WithTerm returns a reason of Kubernetes in words, followed by the reason itself: failed mount (FailedMount). Users can search
// for the reason.
func WithTerm(reason string) string {
	words := Words(reason)
	if strings.EqualFold(words, reason) {
		return words
	}
	return words + " (" + reason + ")"
}

// split splits a name into words. Consecutive upper-case letters form one word.
func split(name string) (words []string) {
	runes, from := []rune(name), 0
	for i := 1; i < len(runes); i++ {
		if unicode.IsUpper(runes[i]) && (!unicode.IsUpper(runes[i-1]) || i+1 < len(runes) && unicode.IsLower(runes[i+1])) {
			words, from = append(words, string(runes[from:i])), i
		}
	}
	return append(words, string(runes[from:]))
}

// word converts a word to lower case, except for abbreviations.
func word(w string) string {
	lower := strings.ToLower(w)
	if s, ok := spelled[lower]; ok {
		return s
	}
	if runes := []rune(w); len(runes) > 1 && unicode.IsUpper(runes[1]) {
		return w
	}
	return lower
}
