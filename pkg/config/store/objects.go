package store

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/openpai/paictl/pkg/config"
	"github.com/openpai/paictl/pkg/hint"
	"github.com/openpai/paictl/pkg/kube"
)

// Annotations of the ConfigMaps.
const (
	prefix          = "paictl.openpai.org/"
	annClusterID    = prefix + "cluster-id"
	annRevision     = prefix + "revision" // also a label of earlier revisions
	annTime         = prefix + "time"
	annBy           = prefix + "pushed-by"
	annMessage      = prefix + "message"
	annFiles        = prefix + "changed"
	annSource       = prefix + "source"
	annVersion      = prefix + "version"
	annCredentials  = prefix + "credentials"
	annHash         = prefix + "content-hash"
	annHistory      = prefix + "history"
	gzipSuffix      = ".gz"
	maxObject       = 1 << 20   // the limit of Kubernetes for data in one object
	maxPlain        = 700 << 10 // files are compressed if the total is larger
	minCompressed   = 32 << 10  // smaller files are never compressed
	maxUncompressed = 64 << 20  // of one file, against data that another program put there
)

// past is the JSON form of an earlier revision in the annotation with the history.
type past struct {
	Revision
	Credentials string `json:"credentials,omitempty"`
}

func encode(r Revision, shown map[string][]byte, history []Revision) (*corev1.ConfigMap, error) {
	cm := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{
		Name: ConfigMapName, Namespace: kube.SystemNamespace,
		Labels: map[string]string{labelManagedBy: managedBy},
		Annotations: map[string]string{
			annClusterID: r.ClusterID, annRevision: strconv.Itoa(r.Number), annTime: r.Time.UTC().Format(time.RFC3339),
			annBy: r.By, annMessage: r.Message, annFiles: strings.Join(r.Files, ","), annSource: r.Source,
			annVersion: r.Version, annCredentials: r.Credentials, annHash: contentHash(shown),
		},
	}}
	for k, v := range cm.Annotations {
		if v == "" {
			delete(cm.Annotations, k)
		}
	}
	var entries []past
	for _, h := range history {
		entries = append(entries, past{h, h.Credentials})
	}
	if len(entries) > 0 {
		b, err := json.Marshal(entries)
		if err != nil {
			return nil, fmt.Errorf("write the history: %w", err)
		}
		cm.Annotations[annHistory] = string(b)
	}
	return cm, pack(cm, shown)
}

// pack stores the files in the ConfigMap. It compresses large files if the ConfigMap would become too large.
func pack(cm *corev1.ConfigMap, shown map[string][]byte) error {
	total := 0
	for _, text := range shown {
		total += len(text)
	}
	cm.Data, cm.BinaryData = map[string]string{}, map[string][]byte{}
	size := 0
	for name, text := range shown {
		if total <= maxPlain || len(text) < minCompressed {
			cm.Data[name] = string(text)
			size += len(name) + len(text)
			continue
		}
		b, err := compress(text)
		if err != nil {
			return fmt.Errorf("compress %s: %w", name, err)
		}
		cm.BinaryData[name+gzipSuffix] = b
		size += len(name) + len(gzipSuffix) + len(b)
	}
	if size > maxObject {
		return hint.Errorf("remove parts that you don't need, such as long comments or labels; layout.yaml is usually the largest file",
			"the configuration has %d KiB when compressed, but Kubernetes stores at most %d KiB in one object", size>>10, maxObject>>10)
	}
	return nil
}

func unpack(cm *corev1.ConfigMap) (map[string][]byte, error) {
	out := map[string][]byte{}
	for name, text := range cm.Data {
		out[name] = []byte(text)
	}
	for name, b := range cm.BinaryData {
		text, err := decompress(b)
		if err != nil {
			return nil, fmt.Errorf("read %s in ConfigMap %s: %w", name, cm.Name, err)
		}
		out[strings.TrimSuffix(name, gzipSuffix)] = text
	}
	var missing []string
	for _, name := range config.Files() {
		if _, ok := out[name]; !ok {
			missing = append(missing, name)
		}
	}
	if len(missing) > 0 || contentHash(out) != cm.Annotations[annHash] {
		return nil, hint.Errorf("push a folder again with --force, or go back with: paictl config rollback N",
			"ConfigMap %s was changed by a program other than paictl%s", cm.Name, listMissing(missing))
	}
	return out, nil
}

func listMissing(names []string) string {
	if len(names) == 0 {
		return ""
	}
	return " (" + strings.Join(names, ", ") + " is missing)"
}

// contentHash returns a hash of the files without their secrets. A hash with secrets would allow every reader of the ConfigMap to test guesses of
// passwords.
func contentHash(shown map[string][]byte) string {
	h := sha256.New()
	for _, name := range config.Files() {
		fmt.Fprintf(h, "%s %d\n%s", name, len(shown[name]), shown[name])
	}
	return "sha256:" + hex.EncodeToString(h.Sum(nil))
}

func revisionOf(cm *corev1.ConfigMap) (Revision, error) {
	a := cm.Annotations
	r := Revision{ClusterID: a[annClusterID], By: a[annBy], Message: a[annMessage], Source: a[annSource],
		Version: a[annVersion], Credentials: a[annCredentials], UID: string(cm.UID)}
	if a[annFiles] != "" {
		r.Files = strings.Split(a[annFiles], ",")
	}
	var err error
	if r.Number, err = strconv.Atoi(a[annRevision]); err != nil || r.Number < 1 {
		return r, foreign(cm)
	}
	if r.Time, err = time.Parse(time.RFC3339, a[annTime]); err != nil {
		return r, foreign(cm)
	}
	return r, nil
}

func foreign(cm *corev1.ConfigMap) error {
	return hint.Errorf("show it with: kubectl get configmap -n "+cm.Namespace+" "+cm.Name+" -o yaml; if nothing needs it, delete it and push again",
		"ConfigMap %s in %s was not made by paictl", cm.Name, cm.Namespace)
}

// historyOf returns the revisions before the revision of a ConfigMap, the latest first.
func historyOf(cm *corev1.ConfigMap) ([]Revision, error) {
	text := cm.Annotations[annHistory]
	if text == "" {
		return nil, nil
	}
	var entries []past
	if err := json.Unmarshal([]byte(text), &entries); err != nil {
		return nil, fmt.Errorf("read the history in ConfigMap %s: %w", cm.Name, err)
	}
	var out []Revision
	for _, e := range entries {
		r := e.Revision
		r.Credentials = e.Credentials
		out = append(out, r)
	}
	return out, nil
}

// archive returns the ConfigMap that keeps a revision after the next push. It returns equal objects for the same revision.
func archive(head *corev1.ConfigMap, number int) *corev1.ConfigMap {
	immutable := true
	out := &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Name: archiveName(number), Namespace: head.Namespace,
			Labels: map[string]string{labelManagedBy: managedBy, annRevision: strconv.Itoa(number)}, Annotations: map[string]string{}},
		Data: head.Data, BinaryData: head.BinaryData, Immutable: &immutable,
	}
	for k, v := range head.Annotations {
		if strings.HasPrefix(k, prefix) && k != annHistory {
			out.Annotations[k] = v
		}
	}
	return out
}

func archiveName(number int) string { return fmt.Sprintf("%s-r%d", ConfigMapName, number) }

func compress(b []byte) ([]byte, error) {
	var out bytes.Buffer
	w, err := gzip.NewWriterLevel(&out, gzip.BestCompression)
	if err != nil {
		return nil, err
	}
	if _, err := w.Write(b); err != nil {
		return nil, err
	}
	if err := w.Close(); err != nil { // it writes the final newline
		return nil, err
	}
	return out.Bytes(), nil
}

func decompress(b []byte) ([]byte, error) {
	r, err := gzip.NewReader(bytes.NewReader(b))
	if err != nil {
		return nil, err
	}
	out, err := io.ReadAll(io.LimitReader(r, maxUncompressed+1))
	if err == nil && len(out) > maxUncompressed {
		err = fmt.Errorf("more than %d MiB", maxUncompressed>>20)
	}
	return out, err
}
