package check

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"

	awsconfig "github.com/aws/aws-sdk-go-v2/config"

	"github.com/objectferry/objectferry/internal/config"
	"github.com/objectferry/objectferry/internal/cos"
	"github.com/objectferry/objectferry/internal/queue"
	"github.com/objectferry/objectferry/internal/route"
	"github.com/objectferry/objectferry/internal/s3store"
)

// Connect wires Deps to the real systems, as the service does. It opens no
// socket.
func Connect(ctx context.Context, c *config.Config) (Deps, error) {
	client, err := queue.Connect(ctx, c.Region, 0)
	if err != nil {
		return Deps{}, err
	}
	base, err := awsconfig.LoadDefaultConfig(ctx, awsconfig.WithRegion(c.Region))
	if err != nil {
		return Deps{}, fmt.Errorf("load AWS configuration: %w", err)
	}
	s3In := func(region string) s3store.ClientConfig {
		return s3store.ClientConfig{Region: region, PathStyle: c.S3.PathStyle}
	}
	return Deps{
		SQS: client,
		Logs: func(place config.Log) logs {
			prefixes := map[string]string{place.Bucket: place.Prefix}
			return s3store.NewLogs(s3store.Connect(base, s3In(c.Region)), prefixes)
		},
		Sources: openSource,
		Destinations: func(r *route.Route) destination {
			d := r.Destination
			return s3store.New(s3store.Connect(base, s3In(d.Region)), s3store.Config{
				Bucket: r.Bucket, ExpectedOwner: d.ExpectedOwner, SSE: d.SSE, KMSKey: d.KMSKeyID(), StorageClass: d.StorageClass, Probe: r.ProbeKey(),
			})
		},
	}, nil
}

// openSource reads the credentials file, if there is one.
func openSource(r *route.Route) (source, error) {
	return cos.New(cos.Config{
		URL: r.Source.COS, Signed: r.Source.Read == config.ReadSigned, CredentialsFile: r.Source.CredentialsFile, CustomDomain: r.Source.CustomDomain,
	}, nil)
}

// Credentials reads the credentials file of each signed source and returns what
// is wrong as config.Errors. A file that is not there is passed over: the
// configuration may be checked elsewhere than it is used.
func Credentials(routes *route.Table) error {
	var problems config.Errors
	for i, r := range routes.Routes() {
		if r.Source.CredentialsFile == "" {
			continue
		}
		if _, err := os.Stat(r.Source.CredentialsFile); errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if _, err := openSource(r); err != nil {
			problems = append(problems, config.Problem{Field: fmt.Sprintf("routes[%d].source.credentials_file", i), Text: err.Error()})
		}
	}
	if len(problems) == 0 {
		return nil
	}
	return problems
}
