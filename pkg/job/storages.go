package job

import (
	"context"
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Storage is a claim that jobs can mount, with the properties of its volume.
type Storage struct {
	Name     string
	PerUser  bool   // a job sees only the folder of its user
	Volume   string // name of the PersistentVolume
	Capacity string
	ReadOnly bool
	// Kind is one of the kinds below. The map Where describes the location of the storage, in the words of OpenPAI's API. Only Client.Storage sets
	// Kind and Where.
	Kind  string
	Where map[string]string
	// MountOptions are the mount options without passwords and keys.
	MountOptions []string
	// Secret is the name of the Secret with the credentials, in SecretNamespace. It is "" if there are no credentials.
	Secret, SecretNamespace string
}

// Kinds of storages.
const (
	StorageNFS       = "nfs"
	StorageSamba     = "samba"
	StorageAzureFile = "azureFile"
	StorageAzureBlob = "azureBlob"
	StorageDShuttle  = "dshuttle"
	StorageOther     = "other"
)

// Storages returns the claims that are bound to a volume, sorted by name.
func (c *Client) Storages(ctx context.Context) ([]Storage, error) {
	list, err := c.Client.CoreV1().PersistentVolumeClaims(c.Namespace).List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, c.Explain(fmt.Errorf("read the storages of jobs: %w", err))
	}
	var out []Storage
	for i := range list.Items {
		if claim := &list.Items[i]; claim.Status.Phase == corev1.ClaimBound {
			out = append(out, newStorage(claim))
		}
	}
	return out, nil
}

func newStorage(claim *corev1.PersistentVolumeClaim) Storage {
	s := Storage{Name: claim.Name, PerUser: claim.Labels[labelShare] == "false", Volume: claim.Spec.VolumeName, ReadOnly: readOnly(claim.Spec.AccessModes)}
	if size, known := claim.Status.Capacity[corev1.ResourceStorage]; known {
		s.Capacity = size.String()
	}
	return s
}

// Storage reads a claim and its volume. It returns nil if the claim or its volume doesn't exist, or if the claim isn't bound.
func (c *Client) Storage(ctx context.Context, name string) (*Storage, error) {
	claim, err := c.Client.CoreV1().PersistentVolumeClaims(c.Namespace).Get(ctx, name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) || err == nil && claim.Status.Phase != corev1.ClaimBound {
		return nil, nil
	}
	if err != nil {
		return nil, c.Explain(fmt.Errorf("read the storage %s: %w", name, err))
	}
	s := newStorage(claim)
	volume, err := c.Client.CoreV1().PersistentVolumes().Get(ctx, s.Volume, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, c.Explain(fmt.Errorf("read the volume of the storage %s: %w", name, err))
	}
	s.MountOptions, s.SecretNamespace = volume.Spec.MountOptions, c.Namespace
	s.behind(&volume.Spec)
	s.ReadOnly = s.ReadOnly || mountedReadOnly(s.MountOptions)
	s.MountOptions = withoutSecrets(s.MountOptions)
	if s.Secret == "" {
		s.SecretNamespace = ""
	}
	return &s, nil
}

// behind sets the kind, the location and the options of a storage from its volume.
func (s *Storage) behind(v *corev1.PersistentVolumeSpec) {
	s.Kind, s.Where = StorageOther, map[string]string{}
	switch {
	case v.NFS != nil:
		s.Kind, s.Where, s.ReadOnly = StorageNFS, map[string]string{"server": v.NFS.Server, "path": v.NFS.Path}, s.ReadOnly || v.NFS.ReadOnly
	case v.AzureFile != nil:
		s.Kind, s.Where, s.ReadOnly, s.Secret = StorageAzureFile, map[string]string{"shareName": v.AzureFile.ShareName}, s.ReadOnly || v.AzureFile.ReadOnly, v.AzureFile.SecretName
		if n := v.AzureFile.SecretNamespace; n != nil && *n != "" {
			s.SecretNamespace = *n
		}
	case v.FlexVolume != nil:
		s.flex(v.FlexVolume)
	case v.CSI != nil:
		s.csi(v.CSI)
	}
}

// flex sets the same fields for the FlexVolume drivers that OpenPAI's manual names.
func (s *Storage) flex(f *corev1.FlexPersistentVolumeSource) {
	s.ReadOnly = s.ReadOnly || f.ReadOnly
	switch driver := f.Driver[strings.LastIndex(f.Driver, "/")+1:]; driver {
	case "smb":
		s.Kind, s.Where = StorageSamba, map[string]string{"address": f.Options["source"]}
	case "blobfuse":
		s.Kind, s.Where = StorageAzureBlob, map[string]string{"containerName": f.Options["container"]}
	}
	if options := f.Options["mountoptions"]; options != "" {
		s.MountOptions = append(s.MountOptions, options)
	}
	s.secret(f.SecretRef)
}

func (s *Storage) csi(c *corev1.CSIPersistentVolumeSource) {
	s.ReadOnly = s.ReadOnly || c.ReadOnly
	at := c.VolumeAttributes
	switch {
	case c.Driver == "nfs.csi.k8s.io":
		s.Kind, s.Where = StorageNFS, map[string]string{"server": at["server"], "path": at["share"]}
	case c.Driver == "smb.csi.k8s.io":
		s.Kind, s.Where = StorageSamba, map[string]string{"address": at["source"]}
	case c.Driver == "file.csi.azure.com":
		s.Kind, s.Where = StorageAzureFile, map[string]string{"shareName": at["shareName"]}
	case c.Driver == "blob.csi.azure.com":
		s.Kind, s.Where = StorageAzureBlob, map[string]string{"containerName": at["containerName"]}
	case strings.Contains(c.Driver, StorageDShuttle):
		s.Kind, s.Where = StorageDShuttle, map[string]string{"dshuttlePath": at["dshuttlePath"]}
	}
	s.secret(c.NodeStageSecretRef)
}

func (s *Storage) secret(ref *corev1.SecretReference) {
	if ref == nil || ref.Name == "" {
		return
	}
	s.Secret = ref.Name
	if ref.Namespace != "" {
		s.SecretNamespace = ref.Namespace
	}
}

// credentials maps the keys of Secrets, as drivers read them, to the names of credentials in OpenPAI's API.
var credentials = map[string]map[string]string{
	StorageSamba:     {"username": "username", "password": "password"},
	StorageAzureFile: {"azurestorageaccountname": "accountName", "azurestorageaccountkey": "accountKey"},
	StorageAzureBlob: {"accountname": "accountName", "accountkey": "accountKey", "accountsastoken": "accountSASToken",
		"azurestorageaccountname": "accountName", "azurestorageaccountkey": "accountKey", "azurestorageaccountsastoken": "accountSASToken"},
}

// Credentials reads the credentials of a storage. If the storage has no credentials, note explains why.
func (c *Client) Credentials(ctx context.Context, s *Storage) (found map[string]string, note string, err error) {
	switch {
	case s.Secret == "" || credentials[s.Kind] == nil:
		return nil, "the storage has no credentials", nil
	case s.SecretNamespace != c.Namespace:
		return nil, "the credentials are in the namespace " + s.SecretNamespace + ", which the server doesn't read", nil
	}
	secret, err := c.Client.CoreV1().Secrets(c.Namespace).Get(ctx, s.Secret, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return nil, "the Secret " + s.Secret + " with the credentials is gone", nil
	}
	if err != nil {
		return nil, "", c.Explain(fmt.Errorf("read the credentials of the storage %s: %w", s.Name, err))
	}
	found = map[string]string{}
	for key, name := range credentials[s.Kind] {
		if value, there := secret.Data[key]; there {
			found[name] = string(value)
		}
	}
	return found, "", nil
}
