package strictaws

import "net/http"

type level int

const (
	serviceLevel level = iota
	bucketLevel
	objectLevel
)

// operation is one of S3's API calls.
type operation struct {
	level      level
	method     string
	sub        string // the query parameter that selects it
	action     string // the API's name
	logged     string // its name in access logs
	permission string // what IAM calls it
	do         func(*s3Request) *apiError
}

func s3Operations() []operation {
	return []operation{
		{serviceLevel, http.MethodGet, "", "ListBuckets", "REST.GET.SERVICE", "s3:ListAllMyBuckets", (*s3Request).listBuckets},

		{bucketLevel, http.MethodPut, "", "CreateBucket", "REST.PUT.BUCKET", "s3:CreateBucket", (*s3Request).createBucket},
		{bucketLevel, http.MethodHead, "", "HeadBucket", "REST.HEAD.BUCKET", "s3:ListBucket", (*s3Request).headBucket},
		{bucketLevel, http.MethodDelete, "", "DeleteBucket", "REST.DELETE.BUCKET", "s3:DeleteBucket", (*s3Request).deleteBucket},
		{bucketLevel, http.MethodGet, "list-type", "ListObjectsV2", "REST.GET.BUCKET", "s3:ListBucket", (*s3Request).listObjects},
		{bucketLevel, http.MethodGet, "uploads", "ListMultipartUploads", "REST.GET.UPLOADS", "s3:ListBucketMultipartUploads", (*s3Request).listUploads},
		{bucketLevel, http.MethodGet, "location", "GetBucketLocation", "REST.GET.LOCATION", "s3:GetBucketLocation", (*s3Request).getLocation},
		{bucketLevel, http.MethodGet, "versioning", "GetBucketVersioning", "REST.GET.VERSIONING", "s3:GetBucketVersioning", (*s3Request).getVersioning},
		{bucketLevel, http.MethodPut, "versioning", "PutBucketVersioning", "REST.PUT.VERSIONING", "s3:PutBucketVersioning", (*s3Request).putVersioning},
		{bucketLevel, http.MethodGet, "notification", "GetBucketNotificationConfiguration", "REST.GET.NOTIFICATION", "s3:GetBucketNotification", (*s3Request).getNotification},
		{bucketLevel, http.MethodPut, "notification", "PutBucketNotificationConfiguration", "REST.PUT.NOTIFICATION", "s3:PutBucketNotification", (*s3Request).putNotification},
		{bucketLevel, http.MethodGet, "logging", "GetBucketLogging", "REST.GET.LOGGING_STATUS", "s3:GetBucketLogging", (*s3Request).getLogging},
		{bucketLevel, http.MethodPut, "logging", "PutBucketLogging", "REST.PUT.LOGGING_STATUS", "s3:PutBucketLogging", (*s3Request).putLogging},
		// each key of the batch is permitted on its own
		{bucketLevel, http.MethodPost, "delete", "DeleteObjects", "REST.POST.MULTI_OBJECT_DELETE", "", (*s3Request).deleteObjects},

		{objectLevel, http.MethodPut, "", "PutObject", "REST.PUT.OBJECT", "s3:PutObject", (*s3Request).putObject},
		{objectLevel, http.MethodGet, "", "GetObject", "REST.GET.OBJECT", "s3:GetObject", (*s3Request).getObject},
		{objectLevel, http.MethodHead, "", "HeadObject", "REST.HEAD.OBJECT", "s3:GetObject", (*s3Request).getObject},
		{objectLevel, http.MethodDelete, "", "DeleteObject", "REST.DELETE.OBJECT", "s3:DeleteObject", (*s3Request).deleteObject},
		{objectLevel, http.MethodPost, "uploads", "CreateMultipartUpload", "REST.POST.UPLOADS", "s3:PutObject", (*s3Request).createUpload},
		{objectLevel, http.MethodPut, "uploadId", "UploadPart", "REST.PUT.PART", "s3:PutObject", (*s3Request).uploadPart},
		{objectLevel, http.MethodPost, "uploadId", "CompleteMultipartUpload", "REST.POST.UPLOAD", "s3:PutObject", (*s3Request).completeUpload},
		{objectLevel, http.MethodDelete, "uploadId", "AbortMultipartUpload", "REST.DELETE.UPLOAD", "s3:AbortMultipartUpload", (*s3Request).abortUpload},
		{objectLevel, http.MethodGet, "uploadId", "ListParts", "REST.GET.UPLOAD", "s3:ListMultipartUploadParts", (*s3Request).listParts},
	}
}

// foreign are the sub-resources that this S3 does not have. Ignoring one would
// turn, say, a read of tags into a read of the object.
func foreign() []string {
	return []string{"accelerate", "acl", "analytics", "attributes", "cors", "encryption", "intelligent-tiering",
		"inventory", "legal-hold", "lifecycle", "metrics", "object-lock", "ownershipControls", "partNumber", "policy",
		"policyStatus", "publicAccessBlock", "replication", "requestPayment", "restore", "retention", "select", "tagging",
		"torrent", "uploadId", "uploads", "versions", "website", "list-type", "location", "versioning", "notification",
		"logging", "delete"}
}

// route finds the operation that a request asks for.
func (c *Cloud) route(method string, t target) (*operation, *apiError) {
	at := objectLevel
	switch {
	case t.bucket == "":
		at = serviceLevel
	case t.key == "":
		at = bucketLevel
	}
	var plain *operation
	for i := range c.operations {
		op := &c.operations[i]
		if op.level != at || op.method != method {
			continue
		}
		if op.sub == "" {
			plain = op
		} else if t.query.Has(op.sub) {
			return op, nil
		}
	}
	for _, sub := range foreign() {
		if t.query.Has(sub) {
			return nil, notImplemented(sub)
		}
	}
	if plain == nil {
		return nil, refuse(http.StatusMethodNotAllowed, "MethodNotAllowed", "The specified method is not allowed against this resource.")
	}
	return plain, nil
}
