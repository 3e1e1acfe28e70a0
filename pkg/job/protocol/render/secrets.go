package render

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/openpai/paictl/pkg/job/protocol"
	v1 "github.com/openpai/paictl/pkg/job/v1"
)

func (r *renderer) secret(name string, kind corev1.SecretType, key string, data []byte) *corev1.Secret {
	labels := r.labels()
	labels[v1.LabelFramework] = r.object
	return &corev1.Secret{
		TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "Secret"},
		ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: r.Namespace, Labels: labels},
		Type:       kind, Data: map[string][]byte{key: data},
	}
}

// plainJSON encodes a value as JSON without escaping & and <, which are frequent in commands.
func plainJSON(v any) ([]byte, error) {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		return nil, err
	}
	return bytes.TrimSpace(b.Bytes()), nil
}

func (r *renderer) specSecret() *corev1.Secret {
	data, err := plainJSON(r.spec())
	if err != nil { // strings and numbers: nothing can fail
		r.fail(nil, "job/size", "the job's spec can't be written as JSON", "")
		return nil
	}
	fingerprint, err := r.job.Fingerprint()
	if err != nil {
		r.fail(nil, "job/mask", err.Error(), "write the file without anchors and unusual characters")
		return nil
	}
	s := r.secret(v1.SpecSecretName(r.object), corev1.SecretTypeOpaque, v1.SpecKey, data)
	s.Data[v1.FingerprintKey] = []byte(fingerprint)
	return s
}

// login is an entry of a Docker configuration file.
type login struct {
	Username string `json:"username"`
	Password string `json:"password"`
	Auth     string `json:"auth"`
}

// registrySecret returns the Secret with the credentials for the images that the job runs, or nil if no image needs credentials. If two images of
// the same registry have different credentials, they are stored under the names of the images, which the kubelet prefers to the name of the
// registry.
func (r *renderer) registrySecret() *corev1.Secret {
	byRegistry := map[string]map[login]bool{}
	var used []protocol.Image
	for _, image := range r.job.Images {
		if !image.Used || image.Auth == nil {
			continue
		}
		used = append(used, image)
		if byRegistry[image.Auth.Registry] == nil {
			byRegistry[image.Auth.Registry] = map[login]bool{}
		}
		byRegistry[image.Auth.Registry][loginOf(image.Auth)] = true
	}
	if len(used) == 0 {
		return nil
	}
	config := struct {
		Auths map[string]login `json:"auths"`
	}{map[string]login{}}
	for _, image := range used {
		key := image.Auth.Registry
		if len(byRegistry[key]) > 1 {
			key = repository(image.URI)
		}
		config.Auths[key] = loginOf(image.Auth)
	}
	data, err := plainJSON(config)
	if err != nil { // strings: nothing can fail
		r.fail(nil, "job/size", "the logins can't be written as JSON", "")
		return nil
	}
	return r.secret(v1.RegistrySecretName(r.object), corev1.SecretTypeDockerConfigJson, corev1.DockerConfigJsonKey, data)
}

func loginOf(a *protocol.Auth) login {
	password := a.Password.Reveal()
	return login{Username: a.Username, Password: password, Auth: base64.StdEncoding.EncodeToString([]byte(a.Username + ":" + password))}
}

// repository returns the name of an image including its registry, without tag and digest.
func repository(uri string) string {
	name, _, _ := strings.Cut(uri, "@")
	if i := strings.LastIndexByte(name, ':'); i > strings.LastIndexByte(name, '/') {
		name = name[:i]
	}
	host, _, path := strings.Cut(name, "/")
	switch {
	case !path:
		return "index.docker.io/library/" + name
	case !strings.ContainsAny(host, ".:") && host != "localhost":
		return "index.docker.io/" + name
	}
	return name
}
