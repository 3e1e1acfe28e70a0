// Package openpai imports people from a cluster of OpenPAI.
// In: Secrets as OpenPAI's REST server wrote them, and the existing people. Out: steps for each group and person, which can be shown or executed;
// the data that can't be taken over, and why.
package openpai

import (
	"context"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
)

// These are the default namespaces of OpenPAI's Secrets.
const (
	UserNamespace  = "pai-user-v2"
	GroupNamespace = "pai-group"
)

// Source holds the people and groups of a cluster of OpenPAI.
type Source struct {
	Groups []Group
	Users  []User
	// Unread maps the Secrets that can't be read to the reasons. The keys are NAMESPACE/NAME.
	Unread map[string]string
	// Tokens maps people to the number of their tokens for programs.
	Tokens map[string]int
}

// Group is a group of OpenPAI.
type Group struct {
	Name, Description, External string
	ACLs                        ACLs
	// Extension holds the other data that clients have stored with the group.
	Extension map[string]json.RawMessage
}

// ACLs are the grants of a group.
type ACLs struct {
	Admin           bool     `json:"admin"`
	VirtualClusters []string `json:"virtualClusters"`
	Storages        []string `json:"storageConfigs"`
}

// User is a user of OpenPAI.
type User struct {
	Name, Email string
	Groups      []string
	// Password is a hash in hexadecimal digits. If users signed in with OIDC, it isn't the hash of a password.
	Password  string
	Extension map[string]json.RawMessage
}

// Read reads the people and groups of a cluster of OpenPAI. It makes no changes there.
func Read(ctx context.Context, from kubernetes.Interface, userNamespace, groupNamespace string) (*Source, error) {
	s := &Source{Unread: map[string]string{}}
	if err := s.each(ctx, from, groupNamespace, "groupname", func(name string, data map[string][]byte) error {
		g := Group{Name: name, Description: string(data["description"]), External: string(data["externalName"]), Extension: map[string]json.RawMessage{}}
		if err := object(data["extension"], &g.Extension); err != nil {
			return err
		}
		if acls, there := g.Extension["acls"]; there {
			if json.Unmarshal(acls, &g.ACLs) != nil {
				return errors.New("extension.acls can't be read")
			}
			delete(g.Extension, "acls")
		}
		s.Groups = append(s.Groups, g)
		return nil
	}); err != nil {
		return nil, err
	}
	err := s.each(ctx, from, userNamespace, "username", func(name string, data map[string][]byte) error {
		u := User{Name: name, Email: string(data["email"]), Password: string(data["password"]), Extension: map[string]json.RawMessage{}}
		if err := object(data["extension"], &u.Extension); err != nil {
			return err
		}
		if text := data["grouplist"]; len(text) > 0 && json.Unmarshal(text, &u.Groups) != nil {
			return errors.New("grouplist is not a list of names")
		}
		s.Users = append(s.Users, u)
		return nil
	})
	if err != nil {
		return nil, err
	}
	return s, s.readTokens(ctx, from)
}

func object(text []byte, into *map[string]json.RawMessage) error {
	if len(text) > 0 && json.Unmarshal(text, into) != nil || *into == nil {
		return errors.New("extension is not a JSON object")
	}
	return nil
}

const pageSize = 500

// each calls take for each Secret of a namespace, in the order of the Secrets' names. The name of a Secret consists of the hexadecimal digits of the
// name that the Secret contains under key.
func (s *Source) each(ctx context.Context, from kubernetes.Interface, namespace, key string, take func(name string, data map[string][]byte) error) error {
	if _, err := from.CoreV1().Namespaces().Get(ctx, namespace, metav1.GetOptions{}); err != nil {
		return fmt.Errorf("look for OpenPAI's namespace %s: %w", namespace, err)
	}
	var all []corev1.Secret
	for next := ""; ; {
		list, err := from.CoreV1().Secrets(namespace).List(ctx, metav1.ListOptions{Limit: pageSize, Continue: next})
		if err != nil {
			return fmt.Errorf("list the Secrets of %s: %w", namespace, err)
		}
		all = append(all, list.Items...)
		if next = list.Continue; next == "" {
			break
		}
	}
	slices.SortFunc(all, func(a, b corev1.Secret) int { return slices.Compare(a.Data[key], b.Data[key]) })
	for i := range all {
		secret := &all[i]
		if secret.Type != corev1.SecretTypeOpaque {
			continue // a service account's token, of early Kubernetes
		}
		name := string(secret.Data[key])
		err := fmt.Errorf("it has no %s, or isn't named after it", key)
		if name != "" && secret.Name == hex.EncodeToString([]byte(name)) {
			err = take(name, secret.Data)
		}
		if err != nil {
			s.Unread[namespace+"/"+secret.Name] = err.Error()
		}
	}
	return nil
}
