#!/usr/bin/env bash
# attach.sh STACK: switches on, for a bucket that exists already, what CloudFormation cannot set on a bucket that it did not
# make: access logging and the lifecycle rule that cleans up after crashes. STACK is one of bucket.yaml. It changes nothing
# else of the bucket, may be run again, and refuses to take logging away from somebody.
set -euo pipefail

die() { echo "attach.sh: $*" >&2; exit 1; }
[ $# -eq 1 ] || { echo "usage: attach.sh STACK" >&2; exit 2; }

outputs() { # STACK FIRST SECOND: the values of two outputs
  aws cloudformation describe-stacks --stack-name "$1" --output text \
    --query "Stacks[0].[Outputs[?OutputKey=='$2'].OutputValue | [0], Outputs[?OutputKey=='$3'].OutputValue | [0]]"
}

found=$(outputs "$1" Bucket Service)
read -r bucket service <<< "$found"
found=$(outputs "$service" LogBucket LogPrefix)
read -r log_bucket prefix <<< "$found"
prefix=$prefix$bucket/

now=$(aws s3api get-bucket-logging --bucket "$bucket" --query LoggingEnabled.TargetBucket --output text)
case $now in
  None | "$log_bucket") ;;
  *) die "bucket $bucket is already logged to $now. A bucket has one place for its logs: name that one as a log bucket of objectferry, or move it" ;;
esac
aws s3api put-bucket-logging --bucket "$bucket" --bucket-logging-status \
  "{\"LoggingEnabled\": {\"TargetBucket\": \"$log_bucket\", \"TargetPrefix\": \"$prefix\"}}"
echo "$bucket is logged to $log_bucket/$prefix"

# Setting a bucket's lifecycle replaces all of its rules, so ours is put beside those that are there; and the size from which
# objects are moved to other storage classes is given back with them, or it would become the default of today.
id=objectferry-abort-incomplete-uploads
rule="{\"ID\": \"$id\", \"Status\": \"Enabled\", \"Filter\": {\"Prefix\": \"\"}, \"AbortIncompleteMultipartUpload\": {\"DaysAfterInitiation\": 2}}"
if ! found=$(aws s3api get-bucket-lifecycle-configuration --bucket "$bucket" --output text \
  --query "[TransitionDefaultMinimumObjectSize, to_string({Rules: [Rules[?ID!='$id'], \`[$rule]\`][]})]" 2>&1); then
  case $found in
    *NoSuchLifecycleConfiguration*) found="None {\"Rules\": [$rule]}" ;;
    *) die "read the lifecycle of $bucket: $found" ;;
  esac
fi
read -r size rules <<< "$found"
[ "$size" != None ] || size=
aws s3api put-bucket-lifecycle-configuration --bucket "$bucket" --lifecycle-configuration "$rules" \
  ${size:+--transition-default-minimum-object-size "$size"} > /dev/null
echo "$bucket aborts incomplete uploads after two days"
