package target

import (
	"cmp"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"strings"
	"time"

	"github.com/minio/minio-go/v7"
	"github.com/minio/minio-go/v7/pkg/credentials"

	"github.com/openpai/paictl/pkg/cluster/backup"
	"github.com/openpai/paictl/pkg/hint"
)

// S3 holds the settings of the connection to a bucket. Credentials come from the environment or from the file of the AWS tools. Credentials never
// come from a flag, because other users can read flags.
type S3 struct {
	// Endpoint is the URL of the server. If it is empty, the value is $AWS_ENDPOINT_URL_S3, $AWS_ENDPOINT_URL or Amazon's URL.
	Endpoint string
	// Region is the bucket's region. If it is empty, the value is $AWS_REGION, $AWS_DEFAULT_REGION or the region that the server reports.
	Region string
	// CA is a file with certificates of CAs to trust in addition to the system's CAs.
	CA string
	// Getenv returns the value of an environment variable.
	Getenv func(string) string
}

const (
	amazon = "https://s3.amazonaws.com"
	// partSize is the size of an upload's parts, in bytes. One part is in memory at a time. With at most mostParts parts per object, an archive may
	// have up to 312 GiB.
	partSize  = 32 << 20
	mostParts = 10_000
	// unfinished is the age at which an upload counts as abandoned. It is longer than the time limit of a backup.
	unfinished = 25 * time.Hour
	// attempts is the maximum number of attempts for a request, with pauses of up to a second.
	attempts = 4
)

// bucket is a target in a bucket. The names of its objects begin with a prefix.
type bucket struct {
	name, prefix string // the prefix is empty or ends with a slash
	client       *minio.Client
	endpoint     string
}

var bucketName = regexp.MustCompile(`^[a-z0-9][a-z0-9.-]{1,61}[a-z0-9]$`)

func openS3(rest string, o S3) (Target, error) {
	name, prefix, _ := strings.Cut(rest, "/")
	if !bucketName.MatchString(name) {
		return nil, hint.Errorf("write s3://BUCKET or s3://BUCKET/PREFIX; the server is named with --s3-endpoint", "%s: this is not the name of a bucket", withoutPassword("s3://"+rest))
	}
	b := &bucket{name: name}
	if prefix = strings.Trim(path.Clean("/"+prefix), "/"); prefix != "" {
		b.prefix = prefix + "/"
	}
	b.endpoint = cmp.Or(o.Endpoint, o.Getenv("AWS_ENDPOINT_URL_S3"), o.Getenv("AWS_ENDPOINT_URL"), amazon)
	server, err := serverOf(b.endpoint)
	if err != nil {
		return nil, err
	}
	transport, err := minio.DefaultTransport(server.Scheme == "https")
	if err != nil {
		return nil, fmt.Errorf("reach %s: %w", b.endpoint, err)
	}
	if transport.TLSClientConfig, err = trusted(o.CA); err != nil {
		return nil, err
	}
	b.client, err = minio.New(server.Host, &minio.Options{
		Secure: server.Scheme == "https", Transport: transport, MaxRetries: attempts,
		Region: cmp.Or(o.Region, o.Getenv("AWS_REGION"), o.Getenv("AWS_DEFAULT_REGION")),
		Creds:  credentials.New(&login{getenv: o.Getenv}),
	})
	if err != nil {
		return nil, hint.Errorf("write it as https://HOST[:PORT]", "the S3 endpoint %s: %w", b.endpoint, err)
	}
	return b, nil
}

// serverOf parses the URL of an S3 server. It rejects URLs with credentials, and unencrypted URLs except on loopback.
func serverOf(endpoint string) (*url.URL, error) {
	u, err := url.Parse(endpoint)
	switch {
	case err != nil:
		return nil, hint.Errorf("write it as https://HOST[:PORT]", "the S3 endpoint is not a URL")
	case u.User != nil:
		return nil, hint.Errorf("put them into AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY", "the S3 endpoint %s has credentials", u.Redacted())
	case u.Scheme != "https" && u.Scheme != "http", u.Host == "", strings.Trim(u.Path, "/") != "", u.RawQuery != "":
		return nil, hint.Errorf("write it as https://HOST[:PORT]", "%q is not a URL of an S3 server", endpoint)
	case u.Scheme == "http" && !local(u.Hostname()):
		return nil, hint.Errorf("give the server a certificate, and name its authority with --s3-ca FILE", "the S3 endpoint %s isn't encrypted, which is only for a server on this machine", endpoint)
	}
	return u, nil
}

func local(host string) bool {
	ip, err := netip.ParseAddr(host)
	return host == "localhost" || err == nil && ip.IsLoopback()
}

func trusted(file string) (*tls.Config, error) {
	c := &tls.Config{MinVersion: tls.VersionTLS12}
	if file == "" {
		return c, nil
	}
	const remedy = "name a file with certificates in PEM: -----BEGIN CERTIFICATE-----"
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, hint.Errorf(remedy, "the S3 server's authority: %w", err)
	}
	if c.RootCAs, err = x509.SystemCertPool(); err != nil {
		c.RootCAs = x509.NewCertPool() // a machine without any
	}
	if !c.RootCAs.AppendCertsFromPEM(text) {
		return nil, hint.Errorf(remedy, "the S3 server's authority: %s has no certificate", file)
	}
	return c, nil
}

var errNoLogin = errors.New("there are no credentials for S3")

// login reads the credentials from the same sources as the AWS tools.
type login struct {
	getenv func(string) string
	file   *credentials.FileAWSCredentials
}

// RetrieveWithCredContext implements credentials.Provider.
func (l *login) RetrieveWithCredContext(*credentials.CredContext) (credentials.Value, error) {
	v := credentials.Value{AccessKeyID: l.getenv("AWS_ACCESS_KEY_ID"), SecretAccessKey: l.getenv("AWS_SECRET_ACCESS_KEY"),
		SessionToken: l.getenv("AWS_SESSION_TOKEN"), SignerType: credentials.SignatureV4}
	if v.AccessKeyID != "" && v.SecretAccessKey != "" {
		return v, nil
	}
	file, profile := l.getenv("AWS_SHARED_CREDENTIALS_FILE"), cmp.Or(l.getenv("AWS_PROFILE"), "default")
	if file == "" {
		file = filepath.Join(l.getenv("HOME"), ".aws", "credentials")
	}
	remedy := "set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or write them below [" + profile + "] into " + file
	if (v.AccessKeyID == "") != (v.SecretAccessKey == "") {
		return v, hint.Wrap(fmt.Errorf("%w: only one of AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY is set", errNoLogin), remedy)
	}
	l.file = &credentials.FileAWSCredentials{Filename: file, Profile: profile}
	v, err := l.file.RetrieveWithCredContext(nil)
	if errors.Is(err, os.ErrNotExist) || err == nil && (v.AccessKeyID == "" || v.SecretAccessKey == "") {
		return v, hint.Wrap(errNoLogin, remedy)
	}
	if err != nil {
		return v, hint.Wrap(fmt.Errorf("%w: %s can't be read as a file of credentials", errNoLogin, file), remedy) // an error about a line may contain it
	}
	return v, nil
}

// Retrieve implements credentials.Provider.
func (l *login) Retrieve() (credentials.Value, error) { return l.RetrieveWithCredContext(nil) }

// IsExpired implements credentials.Provider.
func (l *login) IsExpired() bool { return l.file == nil || l.file.IsExpired() }

// Path implements Target.
func (b *bucket) Path(name string) string { return "s3://" + b.name + "/" + b.prefix + name }

// Close implements Target.
func (*bucket) Close() error { return nil }

// Write implements Target. The object appears after all parts were stored and the upload was completed.
func (b *bucket) Write(ctx context.Context, name string, fill func(context.Context, io.Writer) error) (size int64, err error) {
	if err := b.reach(ctx); err != nil {
		return 0, written(b, name, err)
	}
	b.tidy(ctx, time.Now())
	err = pump(ctx, fill, func(in io.Reader) error {
		info, err := b.client.PutObject(ctx, b.name, b.prefix+name, &limited{in, mostParts * partSize}, -1, minio.PutObjectOptions{ContentType: "application/octet-stream", PartSize: partSize})
		size = info.Size
		return written(b, name, b.explained(err))
	})
	if err == nil {
		return size, nil
	}
	// Remove the unfinished upload here, because the library can't remove it after ctx has ended.
	after, cancel := context.WithTimeout(context.WithoutCancel(ctx), grace)
	defer cancel()
	_ = b.client.RemoveIncompleteUpload(after, b.name, b.prefix+name) // if it fails, the next Write tries it
	return 0, err
}

// limited is a reader that returns an error if the archive exceeds the size limit of a bucket. Without the error, the library would complete the
// upload with a truncated archive.
type limited struct {
	io.Reader
	left int64
}

// Read implements io.Reader.
func (l *limited) Read(p []byte) (int, error) {
	n, err := l.Reader.Read(p)
	if l.left -= int64(n); l.left < 0 {
		return 0, errTooLarge
	}
	if errors.Is(err, io.ErrUnexpectedEOF) { // the error is from the archive, not from this stream: the library would take it for the end
		err = fmt.Errorf("the archive ends early: %v", err) //nolint:errorlint // it must not be recognised as that error
	}
	return n, err
}

var errTooLarge = hint.Errorf("back up to a folder or a machine instead (--to)", "the backup is larger than the 312 GiB that a bucket takes in parts of 32 MiB")

// reach returns an error if the bucket can't be used. It sends a list request, because the response to a HEAD request contains no error message.
func (b *bucket) reach(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel() // the first response is enough
	for o := range b.client.ListObjects(ctx, b.name, minio.ListObjectsOptions{Prefix: b.prefix, MaxKeys: 1}) {
		return b.explained(o.Err)
	}
	return nil
}

// tidy aborts abandoned uploads of archives. It ignores errors, because abandoned uploads only occupy space.
func (b *bucket) tidy(ctx context.Context, now time.Time) {
	core := minio.Core{Client: b.client}
	for u := range b.client.ListIncompleteUploads(ctx, b.name, b.prefix, false) {
		name := strings.TrimPrefix(u.Key, b.prefix)
		if _, ok := backup.Named(name); u.Err == nil && ok && now.Sub(u.Initiated) > unfinished {
			_ = core.AbortMultipartUpload(ctx, b.name, u.Key, u.UploadID)
		}
	}
}

// List implements Target.
func (b *bucket) List(ctx context.Context, cluster string) ([]backup.File, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel() // ends the list if it isn't read to its end
	out := []backup.File{}
	for o := range b.client.ListObjects(ctx, b.name, minio.ListObjectsOptions{Prefix: b.prefix}) {
		if o.Err != nil {
			return nil, fmt.Errorf("list backups of %s: %w", wherever(b), b.explained(o.Err))
		}
		out = found(out, b, cluster, strings.TrimPrefix(o.Key, b.prefix), o.Size)
	}
	backup.Sort(out)
	return out, nil
}

// Open implements Target.
func (b *bucket) Open(ctx context.Context, name string) (io.ReadCloser, int64, error) {
	o, err := b.client.GetObject(ctx, b.name, b.prefix+name, minio.GetObjectOptions{})
	if err != nil {
		return nil, 0, fmt.Errorf("read %s: %w", b.Path(name), b.explained(err))
	}
	info, err := o.Stat() // the first request
	if err != nil {
		_ = o.Close() // nothing was read
		if minio.ToErrorResponse(err).Code == minio.NoSuchKey {
			return nil, 0, missing(b, name)
		}
		return nil, 0, fmt.Errorf("read %s: %w", b.Path(name), b.explained(err))
	}
	return o, info.Size, nil
}

// Delete implements Target.
func (b *bucket) Delete(ctx context.Context, name string) error {
	if err := b.client.RemoveObject(ctx, b.name, b.prefix+name, minio.RemoveObjectOptions{}); err != nil {
		return fmt.Errorf("delete the backup %s: %w", b.Path(name), b.explained(err))
	}
	return nil
}

func (b *bucket) explained(err error) error {
	if err == nil || hint.Of(err) != "" {
		return err
	}
	said := minio.ToErrorResponse(err)
	switch said.Code {
	case minio.NoSuchBucket:
		return hint.Errorf("create the bucket, or name an existing one", "%s has no bucket %s", b.endpoint, b.name)
	case minio.AccessDenied, "AllAccessDisabled":
		return hint.Wrap(fmt.Errorf("%s: access denied", b.endpoint),
			"allow these credentials s3:ListBucket, s3:GetObject, s3:PutObject, s3:AbortMultipartUpload and s3:DeleteObject on the bucket")
	case "InvalidAccessKeyId", "SignatureDoesNotMatch", "InvalidToken", "ExpiredToken", "XAdminUserNotFound": // the last one is versitygw's
		return hint.Wrap(fmt.Errorf("%s refuses the credentials: %w", b.endpoint, err), "check AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY and AWS_SESSION_TOKEN, or the profile in the file of credentials")
	case "AuthorizationHeaderMalformed", "InvalidRegion":
		return hint.Wrap(fmt.Errorf("%s: %w", b.endpoint, err), "name the bucket's region with --s3-region, or in AWS_REGION")
	case "RequestTimeTooSkewed":
		return hint.Wrap(fmt.Errorf("%s: %w", b.endpoint, err), "set the clock of this machine")
	}
	_, untrusted := errors.AsType[*tls.CertificateVerificationError](err)
	_, away := errors.AsType[*net.OpError](err)
	_, asked := errors.AsType[*url.Error](err)
	switch {
	case untrusted:
		return hint.Wrap(err, "name the authority of the server's certificate with --s3-ca FILE")
	case away, asked:
		return hint.Wrap(err, "check the address in --s3-endpoint, and the network")
	case said.StatusCode == http.StatusForbidden:
		return hint.Wrap(fmt.Errorf("%s: %w", b.endpoint, err), "check the credentials, and their permissions for the bucket")
	}
	return fmt.Errorf("%s: %w", b.endpoint, err)
}
