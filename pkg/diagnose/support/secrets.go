package support

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"unicode"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/openpai/paictl/pkg/config"
	"github.com/openpai/paictl/pkg/config/store"
	"github.com/openpai/paictl/pkg/diagnose/support/redact"
	v1 "github.com/openpai/paictl/pkg/job/v1"
	"github.com/openpai/paictl/pkg/kube"
	"github.com/openpai/paictl/pkg/services/catalogue"
)

// known holds the secrets to remove from the bundle. The secrets are only kept in memory.
type known struct {
	builder             redact.Builder
	count, unsearchable int
	seen                map[string]bool
	problems            []error
}

func (k *known) set() *redact.Set { return k.builder.Set() }

func (k *known) add(kind, value string) {
	if value = strings.TrimSpace(value); value == "" || k.seen[value] {
		return
	}
	k.seen[value] = true
	if k.builder.Add(kind, value) {
		k.count++
	} else {
		k.unsearchable++
	}
}

func (b *bundle) knownSecrets(ctx context.Context) *known {
	k := &known{seen: map[string]bool{}}
	b.secretsOfFolder(k)
	if b.o.Cluster == nil {
		return k
	}
	ctx, cancel := context.WithTimeoutCause(ctx, b.o.Limits.Part, fmt.Errorf("no answer within %s", b.o.Limits.Part))
	defer cancel()
	for _, user := range b.o.Cluster.Raw.AuthInfos {
		k.add(redact.Credential, user.Token)
		k.add(redact.Credential, user.Password)
		k.add(redact.Credential, string(user.ClientKeyData))
	}
	b.secretsOfCopies(ctx, k)
	masked := b.maskedJobs(ctx)
	for _, ns := range b.namespaces {
		if err := b.eachSecret(ctx, ns, func(s *corev1.Secret) { k.secret(s, masked) }); err != nil {
			k.problems = append(k.problems, fmt.Errorf("the Secrets of %s can't be read, so their values are not known: %w", ns, b.o.Cluster.Explain(err)))
		}
	}
	return k
}

// assigned matches the values that a line of a file assigns to names. It also matches assignments in comments, and in files that can't be parsed.
// It skips text after "##", because this text is paictl's own description of a field.
var assigned = regexp.MustCompile(`(?m)(##.*)|([\w.-]+)["']?[ \t]*:[ \t]+["']?([^\s"'#{\[|>&*][^"'\n]*)`)

// secretsOfFolder adds the secrets of the operator's files. In these files, secrets are masked by their position. In all other files, secrets are
// found by their value.
func (b *bundle) secretsOfFolder(k *known) {
	files := map[string][]byte{}
	for _, name := range config.Files() {
		text, err := os.ReadFile(filepath.Join(b.o.Folder, name))
		if b.o.Folder == "" || err != nil {
			continue
		}
		files[name] = text
		for _, m := range assigned.FindAllSubmatch(text, -1) {
			if redact.IsSecretName(string(m[2])) {
				value, _, _ := strings.Cut(string(m[3]), " #")
				k.add(redact.Configuration, value)
				if i := strings.IndexAny(value, ",}]"); i >= minGuess { // it may be one of several in a line
					k.add(redact.Configuration, value[:i])
				}
			}
		}
	}
	s := store.New(nil)
	s.SecretPaths = catalogue.SecretPaths
	b.shown = s.Show(b.o.Config, b.o.Folder, files)
	for _, v := range b.shown.Secrets {
		k.add(redact.Configuration, v.Reveal())
	}
}

// secretsOfCopies adds the secrets of the cluster's copy and of its earlier revisions, because an old password may still be valid elsewhere.
func (b *bundle) secretsOfCopies(ctx context.Context, k *known) {
	held := store.New(b.o.Cluster.Client)
	b.history, b.copyErr = held.History(ctx)
	for i, r := range b.history {
		c, err := held.At(ctx, r.Number)
		if err != nil {
			if i == 0 {
				b.copyErr = err
			}
			continue // the secrets of an unreadable revision can't be known
		}
		if i == 0 {
			b.copy = c
		}
		for _, v := range c.Secrets() {
			k.add(redact.Configuration, v.Reveal())
		}
	}
}

const (
	// pageSize is the number of objects in one request. An object may have a size of 1 MB.
	pageSize = 50
	// rowsAtATime is the number of table rows in one request.
	rowsAtATime = 250
)

func (b *bundle) eachSecret(ctx context.Context, namespace string, visit func(*corev1.Secret)) error {
	for next := ""; ; {
		list, err := b.o.Cluster.Client.CoreV1().Secrets(namespace).List(ctx, metav1.ListOptions{Limit: pageSize, Continue: next})
		if err != nil {
			return err
		}
		for i := range list.Items {
			visit(&list.Items[i])
		}
		if next = list.Continue; next == "" {
			return nil
		}
	}
}

const typeHelm = "helm.sh/release.v1"

func publicKeys() []string {
	return []string{
		"namespace", "ca.crt", "tls.crt", "service-ca.crt", "expiration", "description", "token-id", "auth-extra-groups", "username", "user",
		v1.FingerprintKey, "usage-bootstrap-authentication", "usage-bootstrap-signing",
	}
}

// secret adds the values of a Secret. The argument masked contains the job files with masked secrets, by Framework.
func (k *known) secret(s *corev1.Secret, masked map[string]string) {
	if s.Type == typeHelm || s.Name == store.SecretName { // the configuration in another form, whose secrets are already known
		return
	}
	for _, key := range sortedKeys(s.Data) {
		value := string(s.Data[key])
		switch {
		case slices.Contains(publicKeys(), key):
		case key == corev1.DockerConfigJsonKey || key == corev1.DockerConfigKey:
			k.logins(value)
		case key == v1.SpecKey:
			k.filledIn(value, masked[s.Labels[v1.LabelFramework]])
		case isSecretKey(s, key) || strings.Contains(value, "PRIVATE KEY"):
			k.add(redact.Secret, value)
		default:
			k.addUnlikely(value)
		}
	}
}

// isSecretKey reports whether a key shows that its value is secret, even if the value is short or common.
func isSecretKey(s *corev1.Secret, key string) bool {
	return config.LooksSecret(key) || redact.IsSecretName(key) || s.Type == corev1.SecretTypeBasicAuth || s.Type == corev1.SecretTypeServiceAccountToken ||
		s.Type == corev1.SecretTypeSSHAuth || s.Type == corev1.SecretTypeBootstrapToken
}

const (
	// shortestValue and shortestLine are the minimum lengths, in bytes, of values and lines under other keys than those of secrets. Without this
	// limit, "grafana" in a Secret would redact half of the bundle.
	shortestValue = 8
	shortestLine  = 16
)

func (k *known) addUnlikely(value string) {
	value = strings.TrimSpace(value)
	if !strings.Contains(value, "\n") {
		if len(value) >= shortestValue && strings.ContainsFunc(value, func(r rune) bool { return !unicode.IsLower(r) && r != '-' }) {
			k.add(redact.Secret, value)
		}
		return
	}
	for line := range strings.Lines(value) { // a file
		if line = strings.TrimSpace(line); len(line) >= shortestLine {
			k.add(redact.Secret, line)
		}
	}
}

func (k *known) logins(text string) {
	var file any
	if json.Unmarshal([]byte(text), &file) != nil {
		k.add(redact.Secret, text)
		return
	}
	var walk func(key string, v any)
	walk = func(key string, v any) {
		switch v := v.(type) {
		case map[string]any:
			for name, x := range v {
				walk(name, x)
			}
		case string:
			if key == "auth" {
				if plain, err := base64.StdEncoding.DecodeString(v); err == nil {
					_, password, _ := strings.Cut(string(plain), ":")
					k.add(redact.Secret, password)
				}
			}
			if key == "auth" || config.LooksSecret(key) {
				k.add(redact.Secret, v)
			}
		}
	}
	walk("", file)
}

// filledIn adds the secrets in a job's commands. The submitted job file contains masks in their place, so a word that is missing in the file is a
// secret.
func (k *known) filledIn(spec, masked string) {
	var job any
	if json.Unmarshal([]byte(spec), &job) != nil {
		return
	}
	var walk func(key string, v any)
	walk = func(key string, v any) {
		switch v := v.(type) {
		case map[string]any:
			for name, x := range v {
				walk(name, x)
			}
		case []any:
			for _, x := range v {
				walk(key, x)
			}
		case string:
			if key == "command" || key == "exec" || key == "parameters" || strings.Contains(key, "plugin") || config.LooksSecret(key) {
				k.words(v, masked)
			}
		}
	}
	walk("", job)
}

// minGuess is the minimum length, in bytes, of the beginning of a value that may be the whole value.
const minGuess = 6

// shortestWord is the minimum length of a word in a command that counts as a secret.
const shortestWord = 6

func (k *known) words(text, masked string) {
	for _, w := range strings.FieldsFunc(text, func(r rune) bool { return unicode.IsSpace(r) || strings.ContainsRune(`"'=;|&()`, r) }) {
		if len(w) >= shortestWord && masked != "" && !strings.Contains(masked, w) {
			k.add(redact.Secret, w)
		}
	}
}

func sortedKeys[V any](m map[string]V) []string {
	out := make([]string, 0, len(m))
	for key := range m {
		out = append(out, key)
	}
	slices.Sort(out)
	return out
}

// metadataOnly is the Accept header that requests only the metadata of objects from the API server.
const metadataOnly = "application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io,application/json"

// maskedJobs returns the submitted job files with masked secrets, by the names of their Frameworks. It returns an empty map if the cluster doesn't
// run jobs.
func (b *bundle) maskedJobs(ctx context.Context) map[string]string {
	out := map[string]string{}
	for next := ""; ; {
		text, err := b.page("/apis/frameworkcontroller.microsoft.com/v1/namespaces/"+kube.JobNamespace+"/frameworks", next, pageSize).
			SetHeader("Accept", metadataOnly).DoRaw(ctx)
		var page metav1.PartialObjectMetadataList
		if err != nil || json.Unmarshal(text, &page) != nil {
			return out
		}
		for i := range page.Items {
			out[page.Items[i].Name] = page.Items[i].Annotations[v1.AnnotationConfig]
		}
		if next = page.Continue; next == "" {
			return out
		}
	}
}
